"""Models: an embedding, a stack of wired layers and a head."""
