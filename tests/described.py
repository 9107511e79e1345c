"""Holds every answer that a test gets against what `/openapi.json` says of it."""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from typing import Any, Final, NamedTuple

import orjson
from jsonschema import Draft202012Validator, FormatChecker  # type: ignore[import-untyped]
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from tests.quick_schema import Look, Quick
from tolsey.http.blueprints import BLUEPRINTS
from tolsey.http.description import documentation
from tolsey.http.web.edge import Edge, Event, Receive, Scope, Send
from tolsey.setting_types import SUBDOMAINS

BASE_URL: Final = "http://127.0.0.1:8000"
JSON: Final = "application/json"
PROBLEM: Final = "application/problem+json"
PLACE: Final = re.compile(r"\{[^{}]+\}")
TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
NAME: Final = "urn:tolsey:openapi"


def _is_time(written: object) -> bool:
    """Times are RFC 3339 in UTC, with milliseconds (rules/requests#forms)."""
    return not isinstance(written, str) or TIME.fullmatch(written) is not None


FORMATS: Final = FormatChecker(formats=())
FORMATS.checks("date-time")(_is_time)


@cache
def described() -> dict[str, Any]:
    """Describe the whole service."""
    return documentation.described(BLUEPRINTS, BASE_URL)


def schemas_in(node: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Walk all schemas of a schema, each with its place in it; references are not followed."""
    if not isinstance(node, dict):
        return
    yield place, node
    for name, part in node.get("properties", {}).items():
        yield from schemas_in(part, f"{place}.{name}")
    for word in ("items", "additionalProperties"):
        yield from schemas_in(node.get(word), f"{place}[]")
    for word in ("anyOf", "oneOf", "allOf"):
        for part in node.get(word, ()):
            yield from schemas_in(part, place)


def _closed(document: dict[str, Any]) -> dict[str, Any]:
    """Let no answer hold more than it says: clients are told to expect more, and we are not."""
    closed = deepcopy(document)
    answers = [
        content["schema"]
        for operations in closed["paths"].values()
        for operation in operations.values()
        for answer in operation["responses"].values()
        for content in answer.get("content", {}).values()
    ]
    for schema in (*closed["components"]["schemas"].values(), *answers):
        for _, one in schemas_in(schema):
            if "properties" in one:
                one.setdefault("additionalProperties", False)
            if one.get("$ref", "").startswith("#"):  # of what is not seen twice
                one["$ref"] = NAME + one["$ref"]
    closed["components"]["schemas"]["Problem"].pop("additionalProperties")
    return closed


class Validator(NamedTuple):
    """How a body is looked at: quickly, and exactly where that is in doubt."""

    is_right: Look
    exact: Draft202012Validator


class Description:
    """Finds what is said of an answer, and tells what of the answer is not as it is said."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = _closed(document)
        resource = DRAFT202012.create_resource(self._document)
        self._registry: Registry[Any] = Registry().with_resource(NAME, resource)
        self._quick = Quick(
            {
                f"{NAME}#/components/schemas/{name}": one
                for name, one in self._document["components"]["schemas"].items()
            },
            {"date-time": _is_time},
        )
        self._validators: dict[tuple[str, str, str, str], Validator] = {}
        self._paths = self._document["paths"]
        # What has fewer places to fill says more of a path.
        self._patterns = [
            (path.partition("{")[0], re.compile(_pattern(path)), path)
            for path in sorted(self._paths, key=lambda path: path.count("{"))
        ]
        self._problem = self._validator({"$ref": f"{NAME}#/components/schemas/Problem"})

    def operation(self, method: str, path: str) -> tuple[str, Mapping[str, Any]] | None:
        """Find the operation of a request, with its path as it is described."""
        method = {"head": "get"}.get(method, method)
        if method in self._paths.get(path, ()):
            return path, self._paths[path][method]
        for beginning, pattern, written in self._patterns:
            is_near = path.startswith(beginning) and method in self._paths[written]
            if is_near and pattern.fullmatch(path):
                return written, self._paths[written][method]
        return None

    def wrong_with(
        self, method: str, path: str, status: int, kind: str, body: bytes
    ) -> Iterator[str]:
        """Say what of an answer is not as it is described."""
        if kind == PROBLEM:
            yield from _told(self._problem, body)
        found = self.operation(method, path)
        if found is None:
            return
        written, operation = found
        said = operation["responses"].get(str(status))
        if said is None and status >= 400:
            said = operation["responses"].get("default", {})
        if said is None:
            yield f"{status} is not described"
            return
        if "$ref" in said:
            said = self._document["components"]["responses"][said["$ref"].rpartition("/")[2]]
        if method == "head" or not body:
            return
        content = said.get("content", {})
        if kind not in content:
            yield f"{status} is not described as {kind or 'a body'}"
        elif kind == JSON:
            key = (method, written, str(status), kind)
            if key not in self._validators:
                self._validators[key] = self._validator(content[kind]["schema"])
            yield from _told(self._validators[key], body)

    def _validator(self, schema: Mapping[str, Any]) -> Validator:
        slow = Draft202012Validator(schema, registry=self._registry, format_checker=FORMATS)
        return Validator(self._quick.look(schema), slow)


def _pattern(path: str) -> str:
    """Write a path as an expression; only the place of a resource's own address holds slashes."""
    parts = (re.escape(part) for part in PLACE.split(path))
    return (".+" if path.endswith("{resource}") else "[^/]+").join(parts)


def _told(validator: Validator, body: bytes) -> Iterator[str]:
    value = orjson.loads(body)
    if validator.is_right(value):
        return
    for error in validator.exact.iter_errors(value):
        where = "".join(f"[{part!r}]" for part in error.absolute_path)
        yield f"{where or 'the answer'}: {error.message[:300]}"


@cache
def description() -> Description:
    return Description(described())


class Watched:
    """Stands in front of every service of a test, and notes what is not as it is described."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self._serve = Edge.__call__

    async def __call__(self, edge: Edge, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection as the edge does, and look at the answer when it is whole."""
        status, kind, parts = 0, "", list[bytes]()

        async def watched(event: Event) -> None:
            nonlocal status, kind
            if event["type"] == "http.response.start":
                status = event["status"]
                headers = {name.lower(): value for name, value in event.get("headers", ())}
                kind = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip()
            elif event["type"] == "http.response.body" and kind in {JSON, PROBLEM}:
                parts.append(bytes(event.get("body", b"")))
            await send(event)

        try:
            await self._serve(edge, scope, receive, watched)
        finally:
            if status:
                self._look(scope, status, kind, b"".join(parts))

    def _look(self, scope: Scope, status: int, kind: str, body: bytes) -> None:
        method, path = scope["method"].lower(), scope["path"]
        host = next((value for name, value in scope["headers"] if name == b"host"), b"")
        if host.lower().partition(b".")[0].decode("latin-1") in SUBDOMAINS:
            return  # a path there is no path of the description
        try:
            found = list(description().wrong_with(method, path, status, kind, body))
        except orjson.JSONDecodeError:
            return  # who asked went away before the answer was whole
        self.wrong += [f"{method} {path} {status}: {one}" for one in found]
