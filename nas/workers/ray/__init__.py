"""Evaluations on a Ray cluster."""
