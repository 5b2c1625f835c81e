"""Spaces too large to enumerate: their members within a budget are counted, sampled and searched block by block."""
