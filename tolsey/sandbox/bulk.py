"""Bulk operations: a query run in the background into a file of JSON lines."""

import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

import anyio.to_thread
import orjson
from graphql import (
    FieldNode,
    GraphQLError,
    GraphQLObjectType,
    GraphQLOutputType,
    SelectionSetNode,
    get_named_type,
    is_leaf_type,
    is_object_type,
)

from tolsey.sandbox.clock import instant
from tolsey.sandbox.document import Document
from tolsey.sandbox.pages import WHOLE
from tolsey.sandbox.projection import Call, Compiler, Getter, Projection, Request
from tolsey.sandbox.refused import FieldRefused

if TYPE_CHECKING:
    from tolsey.sandbox.platform import Platform
    from tolsey.sandbox.shops import Shop

MAXIMUM_CONNECTIONS = 5
MAXIMUM_DEPTH = 2
_BATCH = 100
_UNFINISHED = ("CREATED", "RUNNING", "CANCELING")


class BulkRefused(Exception):  # noqa: N818 - it becomes a user error
    """Why a query cannot be run in bulk."""


@dataclass(slots=True)
class BulkOperation:
    """A bulk query and how far it is."""

    id: int
    query: str
    created_at: datetime
    group_objects: bool
    polls_left: int
    key: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    status: str = "CREATED"
    error_code: str | None = None
    completed_at: datetime | None = None
    object_count: int = 0
    root_object_count: int = 0
    file_size: int = 0
    url: str | None = None
    file: IO[bytes] | None = field(default=None, repr=False)
    written: bool = False

    def close(self) -> None:
        """Drop the result file."""
        if self.file is not None:
            self.file.close()
            self.file = None


@dataclass(frozen=True, slots=True)
class Emitter:
    """How one connection of a bulk query becomes lines."""

    getter: Getter
    call: Call
    project: Projection
    children: "tuple[Emitter, ...]"


def run_query(_root: Any, call: Call) -> dict[str, Any]:
    """Start a bulk query; a shop runs one at a time."""
    platform, shop = call.request.platform, call.request.shop
    running = next((b for b in shop.bulk_operations.values() if b.status in _UNFINISHED), None)
    if running is not None:
        return _refused(
            "OPERATION_IN_PROGRESS",
            "A bulk query operation for this app and shop is already in progress: "
            f"gid://shopify/BulkOperation/{running.id}.",
        )
    request = Request(platform, shop)
    try:
        document = platform.admin.read(call.args["query"], {}, None)
        emitters = Planner(document, request, platform.admin.compiler(document, request)).plan()
    except (GraphQLError, BulkRefused) as error:
        return _refused("INVALID", f"Invalid bulk query: {error}")
    operation = BulkOperation(
        id=next(shop.ids),
        query=call.args["query"],
        created_at=platform.now(),
        group_objects=call.args["groupObjects"],
        polls_left=platform.bulk_polls,
    )
    shop.bulk_operations[operation.id] = operation
    platform.background(produce, platform, shop, operation, emitters)
    return {"bulkOperation": operation, "userErrors": []}


def cancel(_root: Any, call: Call) -> dict[str, Any]:
    """Stop a bulk query."""
    found = call.request.shop.bulk_operations.get(_number(call.args["id"]))
    if found is None:
        error = {"field": ["id"], "message": "Bulk operation does not exist"}
        return {"bulkOperation": None, "userErrors": [error]}
    if found.status not in _UNFINISHED:
        message = "A bulk operation cannot be canceled when it is " + found.status.lower()
        return {"bulkOperation": found, "userErrors": [{"field": ["id"], "message": message}]}
    _finish(call.request.platform, call.request.shop, found, "CANCELED", None)
    return {"bulkOperation": found, "userErrors": []}


def poll(call: Call, gid: str) -> BulkOperation | None:
    """Look at an operation; it stays RUNNING for the configured number of looks."""
    found = call.request.shop.bulk_operations.get(_number(gid))
    return None if found is None else _looked_at(call, found)


def current(call: Call) -> BulkOperation | None:
    """Look at the newest operation."""
    newest = max(call.request.shop.bulk_operations.values(), key=lambda b: b.id, default=None)
    return None if newest is None else _looked_at(call, newest)


def _looked_at(call: Call, operation: BulkOperation) -> BulkOperation:
    if operation.status in {"CREATED", "RUNNING"}:
        operation.status = "RUNNING"
        if operation.polls_left > 0:
            operation.polls_left -= 1
        elif operation.written:
            _complete(call.request.platform, call.request.shop, operation)
    return operation


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


async def produce(
    platform: "Platform", shop: "Shop", operation: BulkOperation, emitters: Sequence[Emitter]
) -> None:
    """Write the result file in a thread and settle the operation."""
    failure = platform.faults.take_bulk_failure()
    if failure is None:
        try:
            await anyio.to_thread.run_sync(_write, operation, emitters)
        except FieldRefused:
            failure = "ACCESS_DENIED"
    if operation.status not in _UNFINISHED:
        return
    if failure is not None:
        _finish(platform, shop, operation, "FAILED", failure)
        return
    operation.written = True
    if operation.polls_left <= 0:
        _complete(platform, shop, operation)


def _write(operation: BulkOperation, emitters: Sequence[Emitter]) -> None:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the operation
    operation.file = file
    for emitter in emitters:
        roots = iter(emitter.getter(None, emitter.call).nodes)
        while batch := list(islice(roots, _BATCH)):
            lines = list(_lines(batch, emitter, group=operation.group_objects))
            file.writelines(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)
            operation.object_count += len(lines)
            operation.root_object_count += len(batch)
    file.flush()
    operation.file_size = file.tell()


def _lines(batch: Sequence[Any], emitter: Emitter, *, group: bool) -> Iterator[dict[str, Any]]:
    """Give the lines of some root objects; ungrouped children come after all their parents."""
    later: list[dict[str, Any]] = []
    for node in batch:
        line = emitter.project(node)
        yield line
        for child in emitter.children:
            nested = _nested(node, line["id"], child)
            if group:
                yield from nested
            else:
                later.extend(nested)
    yield from later


def _nested(parent: Any, parent_id: str, emitter: Emitter) -> Iterator[dict[str, Any]]:
    for node in emitter.getter(parent, emitter.call).nodes:
        line = emitter.project(node)
        line["__parentId"] = parent_id
        yield line
        for child in emitter.children:
            yield from _nested(node, line["id"], child)


def _complete(platform: "Platform", shop: "Shop", operation: BulkOperation) -> None:
    if operation.object_count:
        operation.url = f"{platform.url}/{shop.domain}/bulk/{operation.id}/{operation.key}.jsonl"
    _finish(platform, shop, operation, "COMPLETED", None)


def _finish(
    platform: "Platform", shop: "Shop", operation: BulkOperation, status: str, error: str | None
) -> None:
    operation.status, operation.error_code = status, error
    operation.completed_at = platform.now()
    body = {
        "admin_graphql_api_id": f"gid://shopify/BulkOperation/{operation.id}",
        "completed_at": instant(operation.completed_at),
        "created_at": instant(operation.created_at),
        "error_code": error and error.lower(),
        "status": status.lower(),
        "type": "query",
    }
    platform.deliver(shop.domain, "bulk_operations/finish", body)


def _refused(code: str, message: str) -> dict[str, Any]:
    error = {"field": None, "message": message, "code": code}
    return {"bulkOperation": None, "userErrors": [error]}


def _number(gid: str) -> int:
    tail = gid.rsplit("/", 1)[-1]
    return int(tail) if tail.isdigit() else -1
