"""What a store remembers: told, corrected, found and forgotten by people, by routes and on a page."""
