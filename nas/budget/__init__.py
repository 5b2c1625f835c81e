"""Hard budgets: bounds, objectives, and the architectures of a space within the bounds."""
