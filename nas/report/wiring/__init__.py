"""What `nas show` measures: how each layer mixes earlier outputs, and RMS and gradients over depth."""
