"""What the commands print: of what a door returned, or of what is installed. The imports stand inside the functions."""
