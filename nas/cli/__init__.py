"""The `nas` command: options, commands, and what prints their results."""
