"""The training loop, what it learns with, and the contract of a task."""
