"""Where evaluations run: in this process, in local processes, on a Ray cluster; and what one may take."""
