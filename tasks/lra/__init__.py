"""The Long Range Arena (Tay et al., 2021): what its releases hold, how it is read, and its tasks."""
