"""The contract of a topology, as checks."""
