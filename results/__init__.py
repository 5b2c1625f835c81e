"""Rows, tables, queries and statistics. Loads no torch."""
