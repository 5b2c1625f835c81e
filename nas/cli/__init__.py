"""The `nas` command: options, commands and printers."""
