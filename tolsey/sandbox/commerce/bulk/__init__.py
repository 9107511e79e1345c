"""Bulk operations: a query checked against their limits and run into a file of lines."""
