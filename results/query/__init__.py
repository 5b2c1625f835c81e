"""Queries on tables: conditions, groups, SQL. Loads no torch."""
