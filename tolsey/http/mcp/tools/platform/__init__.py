"""The tool that reads the commerce platform itself, and what it may read there."""
