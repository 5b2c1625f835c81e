"""Models: an embedding, a stack of layers connected by a topology, and an output head."""
