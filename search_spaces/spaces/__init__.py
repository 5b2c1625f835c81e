"""Search spaces: a base architecture and the values of its axes."""
