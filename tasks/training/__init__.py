"""The training loop, optimizers, muP, and the contract checks of tasks."""
