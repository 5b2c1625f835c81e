"""Data of tasks: batches, splits, fingerprints and image sources."""
