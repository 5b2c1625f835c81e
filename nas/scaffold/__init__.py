"""Templates of a task and a topology."""
