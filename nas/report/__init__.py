"""Reports of a study: tables, plots, an HTML page."""
