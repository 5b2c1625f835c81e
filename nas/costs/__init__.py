"""What a network costs: counts of parameters and FLOPs, and measurements on a device."""
