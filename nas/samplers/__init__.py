"""Proposers of candidates, and the Optuna sampler that keeps them inside a budget."""
