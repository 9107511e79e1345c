"""Selections compiled once into plain functions, then run over any number of objects.

A general executor visits every field with its own machinery, which is too slow for the tens of
thousands of orders a bulk operation writes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from graphql import (
    GraphQLObjectType,
    GraphQLOutputType,
    SelectionSetNode,
    get_named_type,
    get_nullable_type,
    is_abstract_type,
    is_leaf_type,
    is_list_type,
    is_object_type,
)

from tolsey.sandbox.commerce.course.shops import Shops
from tolsey.sandbox.commerce.query.document import Document
from tolsey.sandbox.commerce.query.pages import Listings
from tolsey.sandbox.commerce.shop.state import Shop

Projection = Callable[[Any], Any]


class Endpoint(Protocol):
    """What answers a request, for fields that remember listings or run a document themselves."""

    listings: Listings

    def read(self, text: str, variables: dict[str, Any], name: str | None) -> Document:
        """Check a document and make it ready, or raise what is wrong."""

    def compiler(self, document: Document, request: "Request") -> "Compiler":
        """Make what turns the document's selections into projections."""


@dataclass(slots=True)
class Request:
    """Who asks whom, and how many points the answer has really cost so far."""

    platform: Shops
    shop: Shop
    endpoint: Endpoint
    spent: int = 0
    warnings: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Call:
    """One selected field: its arguments, the request it belongs to, and `@idempotent`'s key."""

    args: Mapping[str, Any]
    request: Request
    idempotency_key: str | None = None


Getter = Callable[[Any, Call], Any]
Step = tuple[str, Getter, Call, Projection | None]
_PRICES = {"Connection": 2, "PageInfo": 0, "Edge": 0}


@dataclass(frozen=True, slots=True)
class Compiler:
    """Turns selections of one document into projections for one request."""

    document: Document
    request: Request
    fields: Mapping[str, Mapping[str, Getter]]
    type_of: Callable[[Any], str]

    def steps(self, kind: GraphQLObjectType, selections: Sequence[SelectionSetNode]) -> list[Step]:
        """List what to read of an object of this type."""
        known = self.fields.get(kind.name, {})
        steps: list[Step] = []
        for key, nodes in self.document.fields(selections, kind).items():
            name = nodes[0].name.value
            if name == "__typename":
                steps.append((key, _constant(kind.name), Call({}, self.request), None))
                continue
            inner = [node.selection_set for node in nodes if node.selection_set is not None]
            call = Call(
                self.document.arguments(kind, nodes[0]),
                self.request,
                self.document.idempotency_key(nodes[0]),
            )
            getter = known.get(name) or _item(name)
            steps.append((key, getter, call, self.value(kind.fields[name].type, inner)))
        return steps

    def value(
        self, kind: GraphQLOutputType, selections: Sequence[SelectionSetNode]
    ) -> Projection | None:
        """Compile what to do with a field's value; leaves are taken as they are."""
        if is_leaf_type(get_named_type(kind)):
            return None
        bare = get_nullable_type(kind)
        if is_list_type(bare):
            one = self.value(bare.of_type, selections)
            assert one is not None  # noqa: S101 - leaves returned above
            return lambda items: [None if item is None else one(item) for item in items]
        if is_abstract_type(bare):
            return self._abstract(bare, selections)
        assert is_object_type(bare)  # noqa: S101 - nothing else is left
        return self.object(bare, selections)

    def _abstract(
        self, kind: GraphQLOutputType, selections: Sequence[SelectionSetNode]
    ) -> Projection:
        assert is_abstract_type(kind)  # noqa: S101 - the caller looked
        options = {
            option.name: self.object(option, selections)
            for option in self.document.schema.get_possible_types(kind)
        }
        return lambda value: options[self.type_of(value)](value)

    def object(self, kind: GraphQLObjectType, selections: Sequence[SelectionSetNode]) -> Projection:
        """Compile the selection of one object type."""
        price = next((price for end, price in _PRICES.items() if kind.name.endswith(end)), 1)
        return self.run(self.steps(kind, selections), price)

    def run(self, steps: Sequence[Step], price: int = 1) -> Projection:
        """Make the function that reads these steps of one object."""
        request = self.request
        if len(steps) == 1:
            key, getter, call, inner = steps[0]

            def project_one(value: Any) -> dict[str, Any]:
                request.spent += price
                read = getter(value, call)
                return {key: read if inner is None or read is None else inner(read)}

            return project_one

        def project(value: Any) -> dict[str, Any]:
            request.spent += price
            found = {}
            for key, getter, call, inner in steps:
                read = getter(value, call)
                found[key] = read if inner is None or read is None else inner(read)
            return found

        return project


def _constant(text: str) -> Getter:
    return lambda _value, _call: text


def _item(name: str) -> Getter:
    """Read a plain mapping, which is what the smaller types are made of."""
    return lambda value, _call: value[name]
