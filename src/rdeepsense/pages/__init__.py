"""Self-contained pages: HTML, tables and pictures, with no request to any other place."""
