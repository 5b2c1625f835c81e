"""The store: one database with Rows and studies, whoever uses it at once and whatever becomes of its server."""
