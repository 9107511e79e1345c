"""The processor's HTTP face: the API's requests, the pages, and trouble on demand."""
