"""Looks at storefronts of other people over the public web, politely and within bounds."""
