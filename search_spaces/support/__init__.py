"""Utilities without knowledge of networks: errors, files, registries, text forms, progress, ranks."""
