"""Questions to a table: conditions, groups, SQL. Loads no torch."""
