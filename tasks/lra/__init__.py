"""The Long Range Arena (Tay et al., 2021): readers of its release, and its tasks."""
