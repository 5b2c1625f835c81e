"""What surrounds a run: device, paths, seeds, provenance, signals."""
