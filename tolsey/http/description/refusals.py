"""What OpenAPI says of refusals: which statuses an operation answers with, their codes and headers.

Whatever else may happen is the answer `default`, as is each 5xx: they stand in the list of codes, too.
"""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from tolsey.actors.codes import CODES
from tolsey.http.description.by_hand import PROBLEM, Described
from tolsey.http.web.access import Access, access_of
from tolsey.http.web.limits import policies_of
from tolsey.http.web.repeats.idempotency import HEADER, is_idempotent

View = Callable[..., Any]

PROBLEM_SCHEMA: Final[Described] = {
    "type": "object",
    "description": "RFC 9457 problem details; a case may add fields of its own.",
    "required": ["type", "title", "status", "detail", "code", "requestId"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {
            "type": "string",
            "description": "stable, for programs; others may be added",
            "x-extensible-enum": sorted(CODES),
        },
        "requestId": {"type": "string"},
        "retryAfter": {"type": "number", "description": "seconds"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"field": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    },
}
TEXT: Final = {"schema": {"type": "string"}}
HEADERS: Final[Mapping[str, Described]] = {
    "RetryAfter": {"description": "Seconds until it is worth trying again.", **TEXT},
    "RateLimit": {"description": "Where the caller stands with each policy.", **TEXT},
    "RateLimitPolicy": {"description": "The policies that count the call.", **TEXT},
    "Challenge": {"description": "How to prove who calls (RFC 9110, 11.6.1).", **TEXT},
}
STANDING: Final = {"RateLimit": "RateLimit", "RateLimit-Policy": "RateLimitPolicy"}
HEADERS_OF: Final[Mapping[int, Mapping[str, str]]] = {
    401: {"WWW-Authenticate": "Challenge"},
    409: {"Retry-After": "RetryAfter"},
    429: {"Retry-After": "RetryAfter", **STANDING},
}
KEY: Final[Described] = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "A repeat with the same key and body within 24 hours gets the first one's answer.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}
READ: Final = {"get", "head"}
NAMED: Final = {400, 401, 403, 404, 409, 413, 415, 422, 429}
"""What operations name; others are of the service as a whole, or of few, and are their `default`."""


def install(components: Described) -> None:
    """Add the answers, headers and the shape that operations refer to."""
    components.setdefault("schemas", {})["Problem"] = PROBLEM_SCHEMA
    components.setdefault("headers", {}).update(HEADERS)
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    responses = components.setdefault("responses", {})
    responses["Problem"] = {
        "description": "Why the request was refused or failed.",
        "headers": _headers({"Retry-After": "RetryAfter"}),
        "content": problem,
    }
    for status in NAMED:
        codes = (
            f"- `{name}`: {one.meaning}"
            for name, one in sorted(CODES.items())
            if status in one.statuses
        )
        responses[_name(status)] = {
            "description": "\n".join(
                [f"{HTTPStatus(status).phrase}; `code` is one of", "", *codes]
            ),
            "headers": _headers(HEADERS_OF.get(status, {})),
            "content": problem,
        }


def describe(operation: Described, method: str, view: View) -> None:
    """Say how an operation refuses, and what of it repeats and limits change."""
    answers = operation["responses"]
    for status in sorted(_statuses(operation, method, view)):
        answers.setdefault(str(status), {"$ref": f"#/components/responses/{_name(status)}"})
    answers.setdefault("default", PROBLEM)
    if is_idempotent(view):
        operation["parameters"] = [*operation["parameters"], KEY]


def _statuses(operation: Described, method: str, view: View) -> set[int]:
    access = access_of(view)
    places = {one["in"] for one in operation["parameters"]}
    found = set[int]()
    if access is not Access.PUBLIC:
        found |= {401}
    if access is Access.ADMINISTRATOR or (access is Access.SESSION and method not in READ):
        found |= {403}
    if "path" in places:
        found |= {404}
    if "query" in places:
        found |= {400, 422}
    if "requestBody" in operation:
        found |= {400, 413, 415, 422}
    if method not in READ and access is not Access.PUBLIC:
        found |= {409}
    if policies_of(view):
        found |= {429}
    return found


def _headers(names: Mapping[str, str]) -> Described:
    return {name: {"$ref": f"#/components/headers/{key}"} for name, key in names.items()}


def _name(status: int) -> str:
    return HTTPStatus(status).phrase.replace(" ", "")
