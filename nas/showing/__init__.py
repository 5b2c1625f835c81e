"""What `nas show` shows: who reads what of whom in a network, how it is drawn, and how strong stream and gradients are."""
