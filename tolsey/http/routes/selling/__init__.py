"""Routes of businesses for sale: what sellers, administrators and anyone do with listings."""
