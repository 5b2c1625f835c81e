"""What `nas show` shows: who reads what of whom in a network, and how large stream and gradients are over depth."""
