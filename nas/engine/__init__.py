"""A search: its plan, and the scheduler that evaluates the plan's jobs."""
