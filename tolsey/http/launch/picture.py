"""The picture of what waits for what: each milestone has its place on five columns, once for each playbook."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final

from tolsey.actors.store.launch.playbook import PLAYBOOK, Playbook

COLUMNS: Final = 5
MIDDLE: Final = 3
WIDTH: Final = 176
HEIGHT: Final = 46
GAP: Final = 36
BEND: Final = 25
"""How far a line runs straight before it bends."""
ASIDE: Final = (0, 6, -6, 3, -3, 9, -9, 12, -12)
"""Lines between the same two columns run beside each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Where a milestone stands; rows are from the first to the last."""

    id: str
    column: int
    row: int

    @property
    def x(self) -> int:
        """The middle of it."""
        return (self.column - 1) * (WIDTH + GAP) + WIDTH // 2

    @property
    def y(self) -> int:
        """Its upper edge."""
        return (self.row - 1) * (HEIGHT + GAP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line from what comes first to what waits for it, as the path of an SVG."""

    before: str
    after: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """All of it, in the order in which it is read."""

    nodes: Sequence[Node]
    lines: Sequence[Line]
    width: int
    height: int


def drawn(playbook: Playbook) -> Picture:
    """Lay a playbook out: a row for each depth, and in it each below what it waits for."""
    rows = _rows(playbook)
    nodes = dict[str, Node]()
    for number, ids in enumerate(rows, 1):
        columns = _columns(playbook, nodes, ids)
        placed = [Node(id=id, column=columns[id], row=number) for id in ids]
        nodes |= {one.id: one for one in sorted(placed, key=lambda one: one.column)}
    used = dict[int, int]()
    return Picture(
        nodes=tuple(nodes.values()),
        lines=tuple(_line(nodes[one], nodes[other], used) for one, other in _direct(playbook)),
        width=COLUMNS * (WIDTH + GAP) - GAP,
        height=len(rows) * (HEIGHT + GAP) - GAP,
    )


def _rows(playbook: Playbook) -> Sequence[Sequence[str]]:
    """Put each milestone one row below the lowest that it waits for."""
    depths = dict[str, int]()

    def depth(id: str) -> int:
        if id not in depths:
            before = playbook.milestones[id].depends_on
            depths[id] = 1 + max(map(depth, before), default=0)
        return depths[id]

    lowest = max(depth(id) for id in playbook.milestones)
    return [
        [id for id in playbook.milestones if depths[id] == number]
        for number in range(1, lowest + 1)
    ]


def _columns(
    playbook: Playbook, placed: Mapping[str, Node], ids: Sequence[str]
) -> Mapping[str, int]:
    """Choose the columns of a row, each as near as can be to what its milestone waits for."""

    def wish(id: str) -> float:
        before = [placed[one].column for one in playbook.milestones[id].depends_on]
        return sum(before) / len(before) if before else MIDDLE

    wishes = [wish(id) for id in ids]

    def cost(columns: Sequence[int]) -> float:
        near = (abs(one - wanted) for one, wanted in zip(columns, wishes, strict=True))
        return sum(near) + sum(abs(one - MIDDLE) for one in columns) / 100

    best = min(permutations(range(1, COLUMNS + 1), len(ids)), key=cost)
    return dict(zip(ids, best, strict=True))


def _direct(playbook: Playbook) -> Iterator[tuple[str, str]]:
    """Name what waits for what, without what follows from others."""
    for id, one in playbook.milestones.items():
        for before in one.depends_on:
            others = {other for other in one.depends_on if other != before}
            if not any(before in _all_before(playbook, other) for other in others):
                yield before, id


def _all_before(playbook: Playbook, id: str) -> Collection[str]:
    before = set(playbook.milestones[id].depends_on)
    return before.union(*(_all_before(playbook, one) for one in before))


def _line(one: Node, other: Node, used: dict[int, int]) -> Line:
    """Draw a line; one that passes rows by runs between two columns, behind no milestone."""
    start, end = one.y + HEIGHT, other.y
    if other.row == one.row + 1:
        path = f"M{one.x} {start} C{one.x} {start + BEND} {other.x} {end - BEND} {other.x} {end}"
        return Line(before=one.id, after=other.id, path=path)
    left = other.column - (one.column < other.column or other.column == COLUMNS)
    between = max(1, min(COLUMNS - 1, left))
    number = used[between] = used.get(between, -1) + 1
    x = between * (WIDTH + GAP) - GAP // 2 + ASIDE[number % len(ASIDE)]
    first, last = start + GAP, end - GAP
    path = (
        f"M{one.x} {start} C{one.x} {start + BEND} {x} {first - BEND} {x} {first} V{last}"
        f" C{x} {last + BEND} {other.x} {end - BEND} {other.x} {end}"
    )
    return Line(before=one.id, after=other.id, path=path)


PICTURE: Final = drawn(PLAYBOOK)
