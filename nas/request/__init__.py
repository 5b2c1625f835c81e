"""Text of a call -> checked requests and jobs; text checks run before PyTorch is loaded."""
