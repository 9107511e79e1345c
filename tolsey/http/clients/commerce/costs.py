"""What a GraphQL document costs, and what a shop's bucket of points has left.

The documented rule: a scalar 0, an object 1, a connection 2 and then its nodes by `first` or `last`, a mutation 10, and
at most 1,000 for one query. In practice the platform scales long connections down: `products(first: 200)` of plain nodes
costs 12, not 202. So the documented rule only estimates what to reserve, the platform's own figures always win, and a
query is refused before it is sent only where even a lower bound is above the limit.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import chain
from typing import Any, Final, Self

from graphql import (
    BooleanValueNode,
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    IntValueNode,
    OperationDefinitionNode,
    OperationType,
    SelectionNode,
    SelectionSetNode,
    ValueNode,
    VariableNode,
    parse,
)

from tolsey.actors.bodies import lenient

MOST_QUERY_POINTS: Final = 1_000.0
"""A query of more points is refused by the platform, on every plan."""
MUTATION_POINTS = 10
CONNECTION_POINTS = 2
MOST_SHOPS = 10_000
ROUNDING_POINTS = 0.01
LONGEST_FILL_SECONDS = 600.0
"""The platform's buckets fill in 20 seconds; a figure that is far from this is not believed."""
LARGEST_INT: Final = 2**31 - 1
LONGEST_INT_CHARACTERS: Final = 11
LEFT_OUT_IF: Final = {"skip": True, "include": False}
"""With which condition a directive leaves out what it is written at."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What the platform says a request cost, and what is left in the bucket after it."""

    requested: float
    actual: float | None
    maximum: float
    available: float
    restore_rate: float

    @property
    def wait_seconds(self) -> float:
        """How long until the bucket holds what was requested."""
        return max(0.0, (self.requested - self.available) / self.restore_rate)


@dataclass(frozen=True, slots=True, eq=False)
class Reservation:
    """Points that a request which is under way may cost."""

    points: float
    at: float


@dataclass(slots=True)
class Bucket:
    """A shop's points as far as we know them: nothing is known before the first answer.

    Whatever is answered, nobody waits longer than the bucket takes to fill.
    """

    maximum: float | None = None
    available: float = 0.0
    restore_rate: float = 1.0
    at: float = 0.0
    under_way: set[Reservation] = field(default_factory=set)
    learned: dict[tuple[str, float], float] = field(default_factory=dict)

    def price(self, document: str, variables: Mapping[str, Any]) -> float:
        """Count the points to reserve: what the platform counted last time, else our own estimate."""
        counted = estimate(document, variables)
        return min(self.learned.get((document, counted), counted), MOST_QUERY_POINTS)

    def wait_seconds(self, points: float, now: float) -> float:
        """How long until these points can be spent; 0 while the bucket is unknown."""
        if self.maximum is None:
            return 0.0
        missing = min(points, self.maximum) - self._level(now)
        return missing / self.restore_rate if missing > ROUNDING_POINTS else 0.0

    def spend(self, points: float, now: float) -> Reservation:
        """Reserve points for a request that is about to leave."""
        reservation = Reservation(points, now)
        self.under_way.add(reservation)
        self._set(self._level(now) - points, now)
        return reservation

    def settle(
        self, reservation: Reservation, cost: Cost | None, now: float, *, is_lost: bool = False
    ) -> None:
        """End a reservation: the platform's figures replace ours, and without any its points are returned.

        A lost answer may have cost them, so they come back only as the bucket fills.
        """
        held = self._points_under_way(now)
        self.under_way.discard(reservation)
        if cost is not None:
            self.maximum = cost.maximum
            self.restore_rate = cost.restore_rate
            self._set(cost.available - self._points_under_way(now), now)
        elif not is_lost:
            self._set(self._level(now) + held - self._points_under_way(now), now)

    def learn(self, document: str, variables: Mapping[str, Any], cost: Cost) -> None:
        """Remember what the platform counts for a document where we count as much as this time."""
        self.learned[document, estimate(document, variables)] = cost.requested
        while len(self.learned) > 100:  # noqa: PLR2004 - more than we have documents and sizes
            self.learned.pop(next(iter(self.learned)))

    def _points_under_way(self, now: float) -> float:
        """Add up what is reserved: of no request for longer than the bucket takes to fill."""
        fill_seconds = (self.maximum or 0.0) / self.restore_rate
        return sum(one.points for one in self.under_way if now - one.at < fill_seconds)

    def _level(self, now: float) -> float:
        grown = self.available + max(0.0, now - self.at) * self.restore_rate
        return grown if self.maximum is None else min(self.maximum, grown)

    def _set(self, level: float, now: float) -> None:
        self.available = max(0.0, level)
        self.at = now


class Buckets:
    """The buckets of the shops used last; an idle shop's bucket is full again, so it may go."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()

    def of(self, shop_domain: str) -> Bucket:
        """Find the shop's bucket, or start an unknown one."""
        bucket = self._buckets.setdefault(shop_domain, Bucket())
        self._buckets.move_to_end(shop_domain)
        while len(self._buckets) > MOST_SHOPS:
            self._buckets.popitem(last=False)
        return bucket


def read_cost(extensions: object) -> Cost | None:
    """Read the `cost` extension of an answer; None when it is absent or makes no sense."""
    cost = lenient(lenient(extensions).get("cost"))
    status = lenient(cost.get("throttleStatus"))
    if not status:
        return None
    requested = read_points(cost.get("requestedQueryCost"))
    maximum = read_points(status.get("maximumAvailable"))
    available = read_points(status.get("currentlyAvailable"), lowest=-1e9)
    rate = read_points(status.get("restoreRate"))
    if requested is None or available is None or not maximum or not rate:
        return None
    if maximum / rate > LONGEST_FILL_SECONDS:
        return None
    actual = read_points(cost.get("actualQueryCost"))
    return Cost(requested, actual, maximum, max(0.0, available), rate)


def read_points(value: object, lowest: float = 0.0) -> float | None:
    """Read a count of points; None when it makes no sense."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if lowest <= value <= 1e9 else None  # noqa: PLR2004 - also drops NaN


@lru_cache(maxsize=64)
def _parsed(document: str) -> DocumentNode:
    return parse(document, no_location=True)


def _operation(document: str) -> OperationDefinitionNode:
    for definition in _parsed(document).definitions:
        if isinstance(definition, OperationDefinitionNode):
            return definition
    raise ValueError("The document holds no operation")


def is_mutation(document: str) -> bool:
    """Whether sending the document changes something."""
    return _operation(document).operation is OperationType.MUTATION


def estimate(document: str, variables: Mapping[str, Any]) -> float:
    """Count a document's points by the documented rule, every list as long as it may be."""
    operation = _operation(document)
    selected = _Selected.of(document, variables)
    fields = selected.fields([operation.selection_set])
    per_field = MUTATION_POINTS if operation.operation is OperationType.MUTATION else 0
    return per_field * len(fields) + sum(_points_of(nodes, selected) for nodes in fields)


def count_least(document: str, variables: Mapping[str, Any]) -> float:
    """Count the points that a document costs at the very least, however the platform counts long lists."""
    operation = _operation(document)
    selected = _Selected.of(document, variables)
    if operation.operation is OperationType.MUTATION:
        return MUTATION_POINTS * len(selected.fields([operation.selection_set], ""))
    return _least_within([operation.selection_set], selected)


def largest_page(document: str, variables: Mapping[str, Any], points: float) -> int:
    """Find the largest `$first` with which the document costs no more than `points`; at least 1."""
    empty = estimate(document, {**variables, "first": 0})
    each = estimate(document, {**variables, "first": 1}) - empty
    return max(1, int((points - empty) // each))


@dataclass(frozen=True, slots=True)
class _Selected:
    """What a document selects, its fragments and variables put in."""

    fragments: Mapping[str, FragmentDefinitionNode]
    variables: Mapping[str, Any]

    @classmethod
    def of(cls, document: str, variables: Mapping[str, Any]) -> Self:
        """Read a document's fragments, and its variables with their defaults."""
        definitions = _parsed(document).definitions
        fragments = {
            one.name.value: one for one in definitions if isinstance(one, FragmentDefinitionNode)
        }
        defaults = {
            one.variable.name.value: _literal(one.default_value)
            for one in _operation(document).variable_definitions or ()
        }
        return cls(fragments, {**defaults, **variables})

    def fields(
        self, selections: Sequence[SelectionSetNode], kind: str | None = None
    ) -> list[list[FieldNode]]:
        """Gather fields by the name they are answered under: of a type, else of every type."""
        found: dict[str, list[FieldNode]] = {}
        for node, conditions in self._walk(selections):
            if kind is None or conditions <= {kind}:
                key = node.alias.value if node.alias else node.name.value
                found.setdefault(key, []).append(node)
        return list(found.values())

    def kinds(self, selections: Sequence[SelectionSetNode]) -> frozenset[str]:
        """List the types that fragments are for."""
        return frozenset[str]().union(*(conditions for _, conditions in self._walk(selections)))

    def size(self, field: FieldNode) -> int | None:
        """Say how many items a field asks for; None where it does not say, or not in a way we know."""
        asked = {one.name.value: self.value(one.value) for one in field.arguments or ()}
        if isinstance(asked.get("ids"), list):
            return len(asked["ids"])
        sizes = [asked[name] for name in ("first", "last") if type(asked.get(name)) is int]
        return max(0, sizes[0]) if sizes and sizes[0] <= LARGEST_INT else None

    def value(self, node: ValueNode) -> Any:
        """Read an argument; None where it is not one that is counted."""
        if isinstance(node, VariableNode):
            return self.variables.get(node.name.value)
        return _literal(node)

    def _walk(
        self,
        selections: Sequence[SelectionSetNode],
        conditions: frozenset[str] = frozenset(),
    ) -> Iterator[tuple[FieldNode, frozenset[str]]]:
        for node in chain.from_iterable(one.selections for one in selections):
            if self._is_left_out(node):
                continue
            if isinstance(node, FieldNode):
                yield node, conditions
                continue
            found: InlineFragmentNode | FragmentDefinitionNode | None
            if isinstance(node, FragmentSpreadNode):
                found = self.fragments.get(node.name.value)
            else:
                assert isinstance(node, InlineFragmentNode)  # noqa: S101 - the grammar has no fourth
                found = node
            if found is not None:
                kind = found.type_condition
                within = conditions if kind is None else conditions | {kind.name.value}
                yield from self._walk([found.selection_set], within)

    def _is_left_out(self, node: SelectionNode) -> bool:
        return any(
            self.value(argument.value) is LEFT_OUT_IF[directive.name.value]
            for directive in node.directives or ()
            if directive.name.value in LEFT_OUT_IF
            for argument in directive.arguments or ()
        )


def _literal(node: ValueNode | None) -> int | bool | None:
    if isinstance(node, BooleanValueNode):
        return node.value
    if isinstance(node, IntValueNode) and len(node.value) <= LONGEST_INT_CHARACTERS:
        return int(node.value)
    return None


def _points_of(nodes: Sequence[FieldNode], selected: _Selected) -> float:
    fields = selected.fields(_selections_of(nodes))
    if not fields:
        return 0
    size = selected.size(nodes[0])
    times = 1 if size is None else size
    items, others = _split(fields, partial(_points_of, selected=selected))
    is_connection = any(_is_item(inner) for inner in fields)
    return CONNECTION_POINTS + others + times * items if is_connection else times * (1 + others)


def _least_of(nodes: Sequence[FieldNode], selected: _Selected) -> float:
    selections = _selections_of(nodes)
    if not selections or nodes[0].name.value == "pageInfo":
        return 0
    fields = selected.fields(selections)
    if any(_is_item(inner) for inner in fields):
        items, others = _split(fields, partial(_least_of, selected=selected))
        return CONNECTION_POINTS + others + _scaled_down(selected.size(nodes[0]) or 0) * items
    within = _least_within(selections, selected)
    # what fragments select from may be an interface, which costs no more than what is selected
    return max(1, within) if selected.kinds(selections) else 1 + within


def _least_within(selections: Sequence[SelectionSetNode], selected: _Selected) -> float:
    """Count the fields of the costliest type that is selected from: an object is of one type only."""
    return max(
        sum(_least_of(nodes, selected) for nodes in selected.fields(selections, kind))
        for kind in selected.kinds(selections) or {""}
    )


def _scaled_down(size: int) -> int:
    """Count a connection's items as the platform does at the least: it was seen to count 250 as 11, 100 as 9, 25 as 6."""
    return min(size, max(1, size.bit_length() - 1))


def _split(
    fields: Sequence[Sequence[FieldNode]], points_of: Callable[[Sequence[FieldNode]], float]
) -> tuple[float, float]:
    """Count a connection's items apart from its other fields."""
    items = others = 0.0
    for nodes in fields:
        if _is_item(nodes):
            # an edge itself is free, its node is not
            items += points_of(nodes) - (nodes[0].name.value == "edges")
        else:
            others += points_of(nodes)
    return items, others


def _is_item(nodes: Sequence[FieldNode]) -> bool:
    return nodes[0].name.value in ("nodes", "edges")


def _selections_of(nodes: Sequence[FieldNode]) -> list[SelectionSetNode]:
    return [node.selection_set for node in nodes if node.selection_set is not None]
