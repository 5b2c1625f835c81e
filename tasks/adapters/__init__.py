"""Trainings of other libraries as tasks: Lightning modules, Hugging Face models."""
