"""Statistics over rows: fronts, summaries of architectures, effects, reliability. Loads no torch."""
