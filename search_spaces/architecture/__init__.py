"""The architecture record: its fields, text forms and checkpoints."""
