"""Rows, their columns and identity, and the files and tables that hold them. Loads no torch."""
