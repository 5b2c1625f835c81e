"""Exporters of trained networks to files that other tools read."""
