"""The Admin GraphQL endpoint: read, check, price, run, answer."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import anyio.to_thread
import orjson
from graphql import DocumentNode, GraphQLError, is_non_null_type, parse, validate

from tolsey.sandbox.commerce.course.shops import Shops
from tolsey.sandbox.commerce.fields.table import FIELDS, type_of
from tolsey.sandbox.commerce.query.cost import MAXIMUM_QUERY_COST, requested_cost
from tolsey.sandbox.commerce.query.document import Document, prepare
from tolsey.sandbox.commerce.query.pages import Listings
from tolsey.sandbox.commerce.query.projection import Compiler, Request
from tolsey.sandbox.commerce.query.refused import FieldRefused
from tolsey.sandbox.commerce.query.schema import own_schema, published_schema
from tolsey.sandbox.commerce.shop.state import Shop

_RATE_LIMITS = "https://shopify.dev/api/usage/rate-limits"
_KEPT_DOCUMENTS = 256


class Admin:
    """Answers GraphQL documents for the shops of one platform."""

    def __init__(self, platform: Shops, published_folder: Path | None) -> None:
        self._platform = platform
        self._published_folder = published_folder
        self.listings = Listings()
        self.documents: set[str] = set()
        self.mutations = 0

    async def warm(self) -> None:
        """Load the published schema, off the event loop."""
        if self._published_folder is not None:
            await anyio.to_thread.run_sync(published_schema, self._published_folder)

    async def answer(self, shop: Shop, body: bytes) -> tuple[int, dict[str, Any]]:
        """Give the status and the JSON answer to a posted document."""
        posted = _posted(body)
        if posted is None:
            return 400, {"errors": {"query": "Required parameter missing or invalid"}}
        await self.warm()
        try:
            document = self.read(*posted)
        except GraphQLError as error:
            return 200, {"errors": [_formatted(error)]}
        except FieldRefused as refusal:
            return 200, {"errors": [_refusal(refusal)]}
        return 200, self._run(shop, document)

    def read(self, text: str, variables: dict[str, Any], name: str | None) -> Document:
        """Check a document against both schemas and make it ready, or raise what is wrong."""
        parsed = _checked(text, self._published_folder)
        self.documents.add(text)
        _refuse_long_arrays(variables)
        return prepare(own_schema(), parsed, variables, name)

    def compiler(self, document: Document, request: Request) -> Compiler:
        """Make what turns the document's selections into projections."""
        return Compiler(document, request, FIELDS, type_of)

    def _run(self, shop: Shop, document: Document) -> dict[str, Any]:
        requested = requested_cost(document)
        if requested > MAXIMUM_QUERY_COST:
            return {"errors": [_too_dear(requested)]}
        bucket = shop.bucket
        if not bucket.take(requested, self._platform.now()):
            error = {
                "message": "Throttled",
                "extensions": {"code": "THROTTLED", "documentation": _RATE_LIMITS},
            }
            return {"errors": [error], "extensions": {"cost": _cost(shop, requested, None)}}
        request = Request(self._platform, shop, self)
        self.mutations += document.is_mutation
        data, errors = self._execute(document, request)
        spent = min(requested, requested if document.is_mutation else request.spent)
        bucket.give_back(requested - spent)
        answer: dict[str, Any] = {"data": data}
        if errors:
            answer["errors"] = errors
        answer["extensions"] = {"cost": _cost(shop, requested, spent)}
        if request.warnings:
            answer["extensions"]["search"] = request.warnings
        return answer

    def _execute(
        self, document: Document, request: Request
    ) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
        root = document.root_type
        steps = self.compiler(document, request).steps(root, [document.operation.selection_set])
        selected = document.fields([document.operation.selection_set], root)
        data: dict[str, Any] | None = {}
        errors: list[dict[str, Any]] = []
        for key, getter, call, inner in steps:
            node = selected[key][0]
            try:
                value = getter(None, call)
                if inner is not None and value is not None:
                    value = inner(value)
            except FieldRefused as refusal:
                value = None
                errors.append({**_refusal(refusal), "path": [key]})
                if is_non_null_type(root.fields[node.name.value].type):
                    data = None
            if data is not None:
                data[key] = value
        return data, errors


@lru_cache(maxsize=_KEPT_DOCUMENTS)
def _checked(text: str, published_folder: Path | None) -> DocumentNode:
    """Read a document that both schemas know, or raise what is wrong; for all platforms of a process."""
    parsed = parse(text)
    published = None if published_folder is None else published_schema(published_folder)
    if published is not None:
        errors = validate(published, parsed)
        if errors:
            raise errors[0]
    errors = validate(own_schema(), parsed)
    if errors and published is not None:
        message = f"The stand-in does not serve this: {errors[0].message}"
        raise FieldRefused(message, "SANDBOX_UNSUPPORTED")
    if errors:
        raise errors[0]
    return parsed


def _posted(body: bytes) -> tuple[str, dict[str, Any], str | None] | None:
    """Read the document, its variables and its name from a request."""
    try:
        posted = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(posted, dict):
        return None
    text, variables = posted.get("query"), posted.get("variables") or {}
    if not isinstance(text, str) or not isinstance(variables, dict):
        return None
    return text, variables, posted.get("operationName")


def _refuse_long_arrays(variables: dict[str, Any]) -> None:
    limit = 250
    for value in variables.values():
        if isinstance(value, list) and len(value) > limit:
            message = f"The input array size of {len(value)} is greater than the maximum allowed of {limit}."
            raise FieldRefused(message, "MAX_INPUT_SIZE_EXCEEDED")


def _cost(shop: Shop, requested: int, actual: int | None) -> dict[str, Any]:
    return {
        "requestedQueryCost": requested,
        "actualQueryCost": actual,
        "throttleStatus": shop.bucket.status(),
    }


def _too_dear(cost: int) -> dict[str, Any]:
    return {
        "message": (
            f"Query cost is {cost}, which exceeds the single query max cost limit "
            f"({MAXIMUM_QUERY_COST}). See {_RATE_LIMITS} for how a query's cost is calculated."
        ),
        "extensions": {
            "code": "MAX_COST_EXCEEDED",
            "cost": cost,
            "maxCost": MAXIMUM_QUERY_COST,
            "documentation": _RATE_LIMITS,
        },
    }


def _formatted(error: GraphQLError) -> dict[str, Any]:
    formatted: dict[str, Any] = dict(error.formatted)
    return formatted


def _refusal(refusal: FieldRefused) -> dict[str, Any]:
    return {"message": refusal.message, "extensions": refusal.extensions}
