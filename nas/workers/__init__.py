"""Workers that run evaluations: this process, local processes, or a Ray cluster; and the resources of each."""
