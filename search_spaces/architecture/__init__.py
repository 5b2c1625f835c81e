"""The architecture record: its fields, its text forms, its checkpoints."""
