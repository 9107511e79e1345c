"""The launch of stores as people, operators and programs meet it."""
