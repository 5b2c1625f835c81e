"""What each command does, a file a command; imported only when it runs."""
