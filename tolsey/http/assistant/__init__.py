"""The chat with its tools: what agents have, for a person who confirms what they plan."""
