"""Checks of a call, before PyTorch is loaded."""
