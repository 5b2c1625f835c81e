"""What a network costs on the device at hand: time, memory and energy, and where the time goes."""
