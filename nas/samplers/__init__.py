"""What proposes candidates: an Optuna sampler that is true to a budget, and the ways of searching inside it."""
