"""Images: vision transformers and the data sets they learn from."""
