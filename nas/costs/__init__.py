"""Costs of a network: counts of parameters and FLOPs, and measurements on a device."""
