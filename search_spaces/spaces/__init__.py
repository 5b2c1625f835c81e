"""Search spaces: a base architecture and the values that its fields may take."""
