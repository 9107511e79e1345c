"""The data room of a deal: what only its parties see, and who looked at it."""
