"""A search: its request, its plan, and the scheduler's loop."""
