"""Files to start from, whole as they stand: `nas new-task` and `nas new-topology` write them under another name."""
