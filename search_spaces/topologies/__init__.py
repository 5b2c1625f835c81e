"""Residual topologies: how each layer's input is composed of earlier outputs."""
