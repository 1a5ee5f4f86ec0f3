"""One HTTP request to a model server."""
