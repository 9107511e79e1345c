"""Query cost and the leaky bucket that pays for it.

The rule is the documented one: a scalar is free, an object costs 1, a connection 2 and then its
child's cost for each node asked for, a mutation 10. No query may ask for more than 1,000 points.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from graphql import (
    FieldNode,
    GraphQLObjectType,
    GraphQLOutputType,
    SelectionSetNode,
    get_named_type,
    is_abstract_type,
    is_object_type,
)

from tolsey.sandbox.document import Document

MAXIMUM_QUERY_COST = 1000
MUTATION_COST = 10
CONNECTION_COST = 2


@dataclass(slots=True)
class Bucket:
    """Points an app may spend in a shop: refilled at `restore_rate` a second up to `maximum`."""

    maximum: float
    restore_rate: float
    refilled_at: datetime
    available: float = -1.0

    def __post_init__(self) -> None:
        if self.available < 0:
            self.available = self.maximum

    def refill(self, now: datetime) -> None:
        """Add what has been restored since the last look."""
        elapsed = max(0.0, (now - self.refilled_at).total_seconds())
        self.available = min(self.maximum, self.available + elapsed * self.restore_rate)
        self.refilled_at = now

    def take(self, points: int, now: datetime) -> bool:
        """Spend points when there are enough; otherwise leave the bucket as it was."""
        self.refill(now)
        if points > self.available:
            return False
        self.available -= points
        return True

    def give_back(self, points: int) -> None:
        """Return what was asked for but not used."""
        self.available = min(self.maximum, self.available + max(0, points))

    def drain(self, now: datetime, leave: float = 0.0) -> None:
        """Spend everything but `leave` points, as another client of the same app would."""
        self.refill(now)
        self.available = leave

    def status(self) -> dict[str, float | int]:
        """Describe the bucket as `throttleStatus` does."""
        return {
            "maximumAvailable": self.maximum,
            "currentlyAvailable": int(self.available),
            "restoreRate": self.restore_rate,
        }


def requested_cost(document: Document) -> int:
    """Count the points a document asks for."""
    root = document.root_type
    selected = document.fields([document.operation.selection_set], root)
    if document.is_mutation:
        return MUTATION_COST * len(selected)
    return sum(_field_cost(document, root, nodes) for nodes in selected.values())


def _field_cost(document: Document, parent: GraphQLObjectType, nodes: Sequence[FieldNode]) -> int:
    definition = parent.fields.get(nodes[0].name.value)
    if definition is None:  # __typename
        return 0
    selections = [node.selection_set for node in nodes if node.selection_set is not None]
    if not selections:
        return 0
    kind = get_named_type(definition.type)
    if kind.name == "PageInfo":
        return 0
    if kind.name.endswith("Connection"):
        asked = document.arguments(parent, nodes[0])
        size = asked.get("first") or asked.get("last") or 0
        return CONNECTION_COST + size * _child_cost(document, kind, selections)
    return 1 + _selection_cost(document, kind, selections)


def _child_cost(
    document: Document, connection: GraphQLOutputType, selections: Sequence[SelectionSetNode]
) -> int:
    """Cost of one node, whether it was asked for through `nodes` or `edges { node }`."""
    assert isinstance(connection, GraphQLObjectType)  # noqa: S101 - the schema's test proves it
    total = 0
    for nodes in document.fields(selections, connection).values():
        name = nodes[0].name.value
        inner = [node.selection_set for node in nodes if node.selection_set is not None]
        if name == "nodes":
            kind = get_named_type(connection.fields[name].type)
            total += 1 + _selection_cost(document, kind, inner)
        elif name == "edges":
            edge = get_named_type(connection.fields[name].type)
            total += _selection_cost(document, edge, inner)
    return total


def _selection_cost(
    document: Document, kind: GraphQLOutputType, selections: Sequence[SelectionSetNode]
) -> int:
    if is_abstract_type(kind):
        options = document.schema.get_possible_types(kind)
        return max((_selection_cost(document, option, selections) for option in options), default=0)
    if not is_object_type(kind):
        return 0
    return sum(
        _field_cost(document, kind, nodes) for nodes in document.fields(selections, kind).values()
    )
