"""Who holds a slot."""

from typing import NamedTuple


class Holding(NamedTuple):
    """A slot's line in the map: its epoch, the process that holds it, the one it is pinned to."""

    epoch: int
    owner: str | None = None
    pinned_to: str | None = None
    beat: int | None = None
    """How often its process had beaten here; none when it never did, as those of older releases."""
