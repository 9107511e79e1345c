"""What is done about each leg of a request to forget."""
