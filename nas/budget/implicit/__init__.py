"""Spaces too large to be listed: what of them is within a budget is counted, drawn and found block by block."""
