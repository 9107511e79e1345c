"""Counts the points that a GraphQL document costs before it is sent.

By the documented rule a scalar costs 0, an object 1 and a mutation 10. A connection costs 2, and then its nodes by
`first` or `last`. One query costs at most 1,000. In practice the platform scales long connections down: `products(first: 200)` of plain nodes
costs 12, not 202. So the documented rule only estimates what to reserve. A query is refused before it is sent only where
even a lower bound is above the limit.

Import it where it is used: it imports graphql, which a start need not wait for.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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

MUTATION_POINTS = 10
CONNECTION_POINTS = 2
LARGEST_INT: Final = 2**31 - 1
LONGEST_INT_CHARACTERS: Final = 11
LEFT_OUT_IF: Final = {"skip": True, "include": False}
"""With which condition a directive leaves out what it is written at."""


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
    """The fields that a document selects, with its fragments and variables filled in."""

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
        """Return how many items a field asks for; None if it states no number that we can read."""
        asked = {one.name.value: self.value(one.value) for one in field.arguments or ()}
        if isinstance(asked.get("ids"), list):
            return len(asked["ids"])
        sizes = [asked[name] for name in ("first", "last") if type(asked.get(name)) is int]
        return max(0, sizes[0]) if sizes and sizes[0] <= LARGEST_INT else None

    def value(self, node: ValueNode) -> Any:
        """Read an argument; None if its type isn't counted."""
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
