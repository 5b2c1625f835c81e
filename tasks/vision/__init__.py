"""Image classification tasks: vision transformers and their data sets."""
