"""How a GraphQL document is read: checked, priced, searched, paged and projected."""
