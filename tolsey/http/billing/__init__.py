"""The pages on which an organization sees and changes what it pays for."""
