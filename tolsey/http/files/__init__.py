"""Files that the service keeps: written as they come, given to who may see them, and gone in time."""
