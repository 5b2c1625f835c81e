"""The store: one database with Rows and studies, safe for concurrent use and through outages of its server."""
