"""The PostgreSQL and Valkey that come along, for a machine that has only Python."""
