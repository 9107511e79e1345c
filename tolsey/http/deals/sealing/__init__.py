"""The PDF of a signed document: set by typst, sealed with the service's own certificate (PAdES)."""
