"""What a call asks for, checked before PyTorch is loaded."""
