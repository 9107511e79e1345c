"""A bulk query's plan: which connections become lines, and what of their nodes is written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphql import (
    FieldNode,
    GraphQLObjectType,
    GraphQLOutputType,
    SelectionSetNode,
    get_named_type,
    is_leaf_type,
    is_object_type,
)

from tolsey.sandbox.commerce.query.document import Document
from tolsey.sandbox.commerce.query.pages import WHOLE
from tolsey.sandbox.commerce.query.projection import Call, Compiler, Getter, Projection, Request

MAXIMUM_CONNECTIONS = 5
MAXIMUM_DEPTH = 2


class BulkRefused(Exception):  # noqa: N818 - it becomes a user error
    """Why a query cannot be run in bulk."""


@dataclass(frozen=True, slots=True)
class Emitter:
    """How one connection of a bulk query becomes lines."""

    getter: Getter
    call: Call
    project: Projection
    children: "tuple[Emitter, ...]"


@dataclass(frozen=True, slots=True)
class Planner:
    """Checks a query against the limits of bulk operations and compiles it into emitters."""

    document: Document
    request: Request
    compiler: Compiler

    def plan(self) -> list[Emitter]:
        """Give an emitter for every top-level connection, or say what is not allowed."""
        document, root = self.document, self.document.root_type
        if document.is_mutation:
            raise BulkRefused("the operation must be a query.")
        emitters = []
        for nodes in document.fields([document.operation.selection_set], root).values():
            name = nodes[0].name.value
            if name in {"node", "nodes"}:
                raise BulkRefused(f"The top-level `{name}` field can't be used.")
            if _is_connection(root, nodes[0]):
                emitters.append(self._emitter(root, nodes, 1))
        if not emitters:
            raise BulkRefused("Bulk queries must contain at least one connection.")
        if sum(map(_connections, emitters)) > MAXIMUM_CONNECTIONS:
            message = f"Bulk queries cannot contain more than {MAXIMUM_CONNECTIONS} connections."
            raise BulkRefused(message)
        return emitters

    def _emitter(
        self, parent: GraphQLObjectType, nodes: Sequence[FieldNode], depth: int
    ) -> Emitter:
        if depth > MAXIMUM_DEPTH:
            raise BulkRefused(
                f"Queries cannot contain connections nested more than {MAXIMUM_DEPTH} levels deep."
            )
        name = nodes[0].name.value
        kind, inner = self._node(parent, nodes)
        chosen = self.document.fields(inner, kind)
        children = []
        for selected in chosen.values():
            if _is_connection(kind, selected[0]):
                children.append(self._emitter(kind, selected, depth + 1))
            elif _hides_connection(self.document, kind, selected):
                raise BulkRefused(
                    "Queries that contain a connection field within a list field are not supported."
                )
        if children and not _selects_id(chosen):
            raise BulkRefused(
                "The parent 'node' field for a nested connection must select the 'id' field "
                f"without an alias. Connection fields without 'id': {name}."
            )
        steps = [
            step
            for step in self.compiler.steps(kind, inner)
            if not _is_connection(kind, chosen[step[0]][0])
        ]
        arguments = {**self.document.arguments(parent, nodes[0]), WHOLE: True}
        getter = self.compiler.fields[parent.name][name]
        call = Call(arguments, self.request)
        return Emitter(getter, call, self.compiler.run(steps), tuple(children))

    def _node(
        self, parent: GraphQLObjectType, nodes: Sequence[FieldNode]
    ) -> tuple[GraphQLObjectType, list[SelectionSetNode]]:
        """Give the type of a connection's nodes and what is selected of them."""
        connection = _object(parent.fields[nodes[0].name.value].type)
        edge = _object(connection.fields["edges"].type)
        outer = self.document.fields(
            [n.selection_set for n in nodes if n.selection_set], connection
        )
        edges = [n.selection_set for n in outer.get("edges", ()) if n.selection_set]
        wrapped = self.document.fields(edges, edge).get("node", ())
        selected = [*outer.get("nodes", ()), *wrapped]
        inner = [node.selection_set for node in selected if node.selection_set]
        return _object(connection.fields["nodes"].type), inner


def _object(kind: GraphQLOutputType) -> GraphQLObjectType:
    named = get_named_type(kind)
    if not is_object_type(named):
        raise BulkRefused(f"{named.name} cannot be used in a bulk query.")
    return named


def _is_connection(parent: GraphQLObjectType, node: FieldNode) -> bool:
    definition = parent.fields.get(node.name.value)
    return definition is not None and get_named_type(definition.type).name.endswith("Connection")


def _hides_connection(
    document: Document, parent: GraphQLObjectType, nodes: Sequence[FieldNode]
) -> bool:
    definition = parent.fields.get(nodes[0].name.value)
    if definition is None or is_leaf_type(get_named_type(definition.type)):
        return False
    kind = get_named_type(definition.type)
    if not is_object_type(kind):
        return False
    inner = document.fields([n.selection_set for n in nodes if n.selection_set], kind)
    return any(
        _is_connection(kind, found[0]) or _hides_connection(document, kind, found)
        for found in inner.values()
    )


def _selects_id(selected: Mapping[str, Sequence[FieldNode]]) -> bool:
    return "id" in selected and selected["id"][0].name.value == "id"


def _connections(emitter: Emitter) -> int:
    return 1 + sum(map(_connections, emitter.children))
