"""What people see of a study: tables, pictures, an HTML page."""
