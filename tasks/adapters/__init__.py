"""Adapters for trainings of other libraries: Lightning modules and Hugging Face models."""
