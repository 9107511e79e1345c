"""A tree over the heads of chains (RFC 9162 has the idea): one root, and a short way to it for each head.

All hashes are hex digits, and a parent is sha256 over the text `left:right`, so that `sha256sum` alone climbs
it. An odd node goes up as it is (rules/marketplace#daily-roots).
"""

from collections.abc import Iterable, Sequence
from typing import Final

from tolsey.actors.listing.evidence import sha256

LEFT: Final = "left"
RIGHT: Final = "right"

WayUp = list[tuple[str, str]]
"""From a head to the root: on which side the other child is, and its hash."""


def grown(heads: Sequence[str]) -> tuple[str, list[WayUp]]:
    """Build the tree over at least one head; answers its root, and each head's way up."""
    levels = [list(heads)]
    while len(below := levels[-1]) > 1:
        level = [_parent(*pair) for pair in zip(below[::2], below[1::2], strict=False)]
        levels.append(level + below[len(level) * 2 :])
    return levels[-1][0], [_way(levels, place) for place in range(len(heads))]


def _way(levels: Sequence[Sequence[str]], place: int) -> WayUp:
    """Climb from a head; the last of an odd level has nobody beside it, and goes up as it is."""
    way: WayUp = []
    for level in levels[:-1]:
        beside = place ^ 1
        if beside < len(level):
            way.append((LEFT if place % 2 else RIGHT, level[beside]))
        place //= 2
    return way


def climbed(head: str, way: Iterable[tuple[str, str]]) -> str:
    """Say to which root a way leads from a head."""
    for side, other in way:
        head = _parent(other, head) if side == LEFT else _parent(head, other)
    return head


def _parent(left: str, right: str) -> str:
    return sha256(f"{left}:{right}".encode())
