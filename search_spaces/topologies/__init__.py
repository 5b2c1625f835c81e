"""Residual topologies: how each layer's inputs are composed from what came before it."""
