"""A study as one page that opens anywhere: `findings` has its numbers, `charts` draws them, `page` writes them down."""
