"""One evaluation: a job in, a Row out, also after failures."""
