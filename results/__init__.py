"""What was found: rows, tables, queries and fronts. Nothing here loads torch."""
