"""Events from the providers of mail, code and messages: proven, kept once, answered (rules/service#provider-events)."""
