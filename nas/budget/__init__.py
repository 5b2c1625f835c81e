"""Hard budgets: bounds, objectives, and the architectures of a space that keep them."""
