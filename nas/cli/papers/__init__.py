"""`nas reproduce`: what papers print beside what is measured here."""
