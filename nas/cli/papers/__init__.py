"""`nas reproduce`: numbers that papers print, compared with this project."""
