"""Files to start from: a task, a topology."""
