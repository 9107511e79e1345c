"""What was asked of an organization and takes calls to the outside."""
