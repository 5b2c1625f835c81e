"""The environment of a run: device, paths, seeds, provenance, signals."""
