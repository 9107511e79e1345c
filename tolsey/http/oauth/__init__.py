"""The authorization server that guards what agents may do (OAuth 2.1, rules/agents#authorization)."""
