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
    ways: list[WayUp] = [[] for _ in heads]
    level = [(head, [n]) for n, head in enumerate(heads)]
    while len(level) > 1:
        parents = []
        for (left, on_left), (right, on_right) in zip(level[::2], level[1::2], strict=False):
            for n in on_left:
                ways[n].append((RIGHT, right))
            for n in on_right:
                ways[n].append((LEFT, left))
            parents.append((_parent(left, right), on_left + on_right))
        level = parents + level[len(parents) * 2 :]
    return level[0][0], ways


def climbed(head: str, way: Iterable[tuple[str, str]]) -> str:
    """Say to which root a way leads from a head."""
    for side, other in way:
        head = _parent(other, head) if side == LEFT else _parent(head, other)
    return head


def _parent(left: str, right: str) -> str:
    return sha256(f"{left}:{right}".encode())
