"""Layers, and the loop that runs them through a topology."""
