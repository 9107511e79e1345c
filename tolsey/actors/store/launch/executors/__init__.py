"""What this version carries out of a launch by itself."""

from typing import Final

BUILT: Final = frozenset[str]()
"""The milestones that have an executor."""
