"""The launch of a store: a graph of milestones that run by themselves, or wait for a person (rules/launch#milestones)."""
