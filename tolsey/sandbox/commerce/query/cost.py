"""What a query costs.

The rule is the documented one: a scalar is free, an object costs 1, a connection 2 and then its
child's cost for each node asked for, a mutation 10. No query may ask for more than 1,000 points.
"""

from collections.abc import Sequence

from graphql import (
    FieldNode,
    GraphQLObjectType,
    GraphQLOutputType,
    SelectionSetNode,
    get_named_type,
    is_abstract_type,
    is_object_type,
)

from tolsey.sandbox.commerce.query.document import Document

MAXIMUM_QUERY_COST = 1000
MUTATION_COST = 10
CONNECTION_COST = 2


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
