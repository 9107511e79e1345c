"""The launch of a store for agents: read, run, and looked after."""
