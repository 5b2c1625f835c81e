"""Trained networks as files that other tools read."""
