"""Examples: batches, splits, fingerprints, and where images come from."""
