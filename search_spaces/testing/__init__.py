"""Contract checks for topologies."""
