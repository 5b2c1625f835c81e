"""What is raised where a cluster's head is gone. By itself, for whoever catches it has no need of Ray."""

from search_spaces.errors import UserError


class HeadLost(UserError):
    """The head of a cluster is gone. At this process's end Ray would wait for it, or crash: end it without."""
