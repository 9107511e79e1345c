"""The Model Context Protocol over Streamable HTTP: stateless, four revisions on one address."""
