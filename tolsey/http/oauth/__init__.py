"""The authorization server that guards what agents may do (OAuth 2.1, product/mcp.md, 4)."""
