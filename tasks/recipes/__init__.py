"""Recipes: how a network is trained. Loads no torch."""
