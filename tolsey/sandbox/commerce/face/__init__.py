"""The platform's HTTP face: the grant, the Admin API, downloads, and trouble on demand."""
