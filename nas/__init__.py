"""The engine: search, budgets, costs, workers, reports, and the `nas` command."""
