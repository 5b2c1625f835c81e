"""One evaluation: a job in, a Row out, whatever happens."""
