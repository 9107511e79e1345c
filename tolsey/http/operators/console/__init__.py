"""The operators' console: the answers of the admin routes as pages, each act with its count and a reason."""
