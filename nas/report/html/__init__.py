"""A study as one HTML file: `chart_records` computes the numbers, `charts` draws them, `page` writes the file."""
