"""Runnable templates, which `nas new-task` and `nas new-topology` write under another name."""
