"""What knows nothing of networks: errors, files, the registry, text forms, progress, ranks."""
