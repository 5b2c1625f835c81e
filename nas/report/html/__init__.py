"""A study as one page that opens anywhere: `summaries` has its numbers, `charts` draws them, `page` writes them."""
