"""A study as one HTML file: `summaries` computes the numbers, `charts` draws them, `page` writes the file."""
