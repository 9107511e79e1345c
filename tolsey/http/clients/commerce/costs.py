"""What a GraphQL document costs, and what a shop's bucket of points has left.

Costs follow the platform's published rule: a scalar 0, an object 1, a connection 2 and its items, a mutation 10. The platform counts the same
document again and its numbers always win.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    InlineFragmentNode,
    IntValueNode,
    OperationDefinitionNode,
    OperationType,
    VariableNode,
    parse,
)

from tolsey.actors.bodies import lenient

MUTATION_POINTS = 10
CONNECTION_POINTS = 2
MOST_SHOPS = 10_000
ROUNDING_POINTS = 0.01


@dataclass(frozen=True, slots=True)
class Cost:
    """What the platform says a request cost, and what is left in the bucket after it."""

    requested: float
    actual: float | None
    maximum: float
    available: float
    restore_rate: float

    @property
    def affordable(self) -> bool:
        """Whether a full bucket would ever pay for the request."""
        return self.requested <= self.maximum

    @property
    def wait_seconds(self) -> float:
        """How long until the bucket holds what was requested."""
        return max(0.0, (self.requested - self.available) / self.restore_rate)


@dataclass(slots=True)
class Bucket:
    """A shop's points as far as we know them: nothing is known before the first answer."""

    maximum: float | None = None
    available: float = 0.0
    restore_rate: float = 1.0
    at: float = 0.0
    in_flight: float = 0.0
    learned: dict[tuple[str, int | None], float] = field(default_factory=dict)

    def price(self, document: str, variables: Mapping[str, Any]) -> float:
        """Points to reserve: what the platform counted last time, else our own estimate."""
        known = self.learned.get((document, variables.get("first")))
        return known or estimate(document, variables)

    def wait_seconds(self, points: float, now: float) -> float:
        """How long until these points can be spent; 0 while the bucket is unknown."""
        if self.maximum is None:
            return 0.0
        missing = min(points, self.maximum) - self._level(now)
        return missing / self.restore_rate if missing > ROUNDING_POINTS else 0.0

    def spend(self, points: float, now: float) -> None:
        """Reserve points for a request that is about to leave."""
        self.available = self._level(now) - points
        self.at = now
        self.in_flight += points

    def settle(self, points: float, cost: Cost | None, now: float) -> None:
        """Replace what we guessed by what the platform said, less what is still under way."""
        self.in_flight = max(0.0, self.in_flight - points)
        if cost is None:
            return
        self.maximum = cost.maximum
        self.restore_rate = cost.restore_rate
        self.available = cost.available - self.in_flight
        self.at = now

    def learn(self, document: str, variables: Mapping[str, Any], cost: Cost) -> None:
        """Remember what the platform counts for a document."""
        self.learned[document, variables.get("first")] = cost.requested
        while len(self.learned) > 100:  # noqa: PLR2004 - more than we have documents and sizes
            self.learned.pop(next(iter(self.learned)))

    def _level(self, now: float) -> float:
        grown = self.available + max(0.0, now - self.at) * self.restore_rate
        return grown if self.maximum is None else min(self.maximum, grown)


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
    requested = _points(cost.get("requestedQueryCost"))
    maximum = _points(status.get("maximumAvailable"))
    available = _points(status.get("currentlyAvailable"), lowest=-1e9)
    rate = _points(status.get("restoreRate"))
    if requested is None or available is None or not maximum or not rate:
        return None
    return Cost(requested, _points(cost.get("actualQueryCost")), maximum, available, rate)


def _points(value: object, lowest: float = 0.0) -> float | None:
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
    """Count a document's points by the published rule, every list as long as it may be."""
    operation = _operation(document)
    per_field = MUTATION_POINTS if operation.operation is OperationType.MUTATION else 0
    fields = _fields(operation)
    return per_field * len(fields) + sum(_points_of(field, variables) for field in fields)


def largest_page(document: str, variables: Mapping[str, Any], points: float) -> int:
    """Find the largest `$first` with which the document costs no more than `points`; at least 1."""
    empty = estimate(document, {**variables, "first": 0})
    each = estimate(document, {**variables, "first": 1}) - empty
    return max(1, int((points - empty) // each))


def _fields(node: OperationDefinitionNode | FieldNode | InlineFragmentNode) -> list[FieldNode]:
    if node.selection_set is None:
        return []
    found = []
    for selected in node.selection_set.selections:
        if isinstance(selected, FieldNode):
            found.append(selected)
        elif isinstance(selected, InlineFragmentNode):
            found += _fields(selected)
    return found


def _points_of(field: FieldNode, variables: Mapping[str, Any]) -> float:
    fields = _fields(field)
    if not fields:
        return 0
    size = _size(field, variables)
    items = [inner for inner in fields if inner.name.value in ("nodes", "edges")]
    if not items:
        each = 1 + sum(_points_of(inner, variables) for inner in fields)
        return each if size is None else size * each
    others = sum(_points_of(inner, variables) for inner in fields if inner not in items)
    each = sum(_points_of(inner, variables) - (inner.name.value == "edges") for inner in items)
    return CONNECTION_POINTS + others + (1 if size is None else size) * each


def _size(field: FieldNode, variables: Mapping[str, Any]) -> int | None:
    for argument in field.arguments or ():
        if argument.name.value == "ids" and isinstance(argument.value, VariableNode):
            return len(variables.get(argument.value.name.value) or ())
        if argument.name.value not in ("first", "last"):
            continue
        if isinstance(argument.value, IntValueNode):
            return int(argument.value.value)
        if isinstance(argument.value, VariableNode):
            return int(variables.get(argument.value.name.value) or 0)
    return None
