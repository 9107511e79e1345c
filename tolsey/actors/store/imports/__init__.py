"""What a shop sold before it was connected, read in bulk from the platform."""
