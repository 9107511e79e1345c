"""Tolsey: one hall for merchants, one mailbox for each."""

__version__ = "0.1.0"
