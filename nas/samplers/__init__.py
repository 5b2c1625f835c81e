"""Proposers of candidates, and the Optuna sampler that keeps them within a budget."""
