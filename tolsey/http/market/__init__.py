"""Looking for a business, and watching one."""
