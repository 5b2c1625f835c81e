"""What is built: the architecture record, search spaces, topologies, layers and models."""

from search_spaces.architecture import Architecture
from search_spaces.errors import UserError
from search_spaces.space import Candidate, SearchSpace

__all__ = ["Architecture", "Candidate", "SearchSpace", "UserError"]
