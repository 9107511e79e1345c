"""Every error in one shape: RFC 9457 problem details with a stable code."""

import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import orjson
import structlog
from pydantic import ValidationError
from quart import Quart, Response, request
from quart_schema import RequestSchemaValidationError
from werkzeug.exceptions import HTTPException, NotFound, RequestEntityTooLarge

from tolsey.actors.processor import ProcessorError, refusal_of
from tolsey.actors.refusals import (
    Conflict,
    Refusal,
    Unauthorized,
    Unavailable,
)
from tolsey.http.web.context import request_id
from tolsey.runtime.errors import (
    DeadlineExceeded,
    Duplicate,
    Overloaded,
    RuntimeFault,
    ShardUnavailable,
    TurnFailed,
)
from tolsey.storage.errors import StorageBusy, StorageError, StorageOverdue, StorageUnavailable

PROBLEM = "application/problem+json"
ERRORS_SHOWN = 50
NO_OBJECT = "must be a JSON object"
BUG = (
    "Something went wrong on our side. Try again, and quote the request id if you contact support."
)
REGISTERED_TYPES = {
    "too_many_requests": "https://iana.org/assignments/http-problem-types#quota-exceeded",
}
"""Codes whose problem has a type that everyone knows; the types of all others are our own."""

log = structlog.get_logger()


def problem_body(
    status: int, code: str, detail: str, request_id: str, fields: Mapping[str, Any] | None = None
) -> bytes:
    """Write a problem document; `fields` are the case's own and never replace the common ones."""
    common = {
        "type": REGISTERED_TYPES.get(code, f"urn:tolsey:problem:{code}"),
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "requestId": request_id,
    }
    return orjson.dumps({**(fields or {}), **common}, default=str)


def problem(status: int, code: str, detail: str, **fields: Any) -> Response:
    """Answer the current request with a problem; `retryAfter` (seconds) becomes a header too."""
    body = problem_body(status, code, detail, request_id(), fields)
    response = Response(body, status=status, content_type=PROBLEM)
    if "retryAfter" in fields:
        response.headers["Retry-After"] = str(math.ceil(fields["retryAfter"]))
    return response


def refused(error: Refusal) -> Response:
    """Answer with a refusal."""
    response = problem(error.status, error.code, error.detail, **error.fields)
    if isinstance(error, Unauthorized):
        response.headers["WWW-Authenticate"] = error.challenge
    return response


def misshapen(error: RequestSchemaValidationError) -> Response:
    """Answer with the fields of a body or query that are not as documented."""
    cause = error.validation_error
    errors = []
    if isinstance(cause, ValidationError):
        found = cause.errors(include_input=False, include_url=False, include_context=False)
        errors = [
            {
                "field": ".".join(str(part) for part in item["loc"]),
                "message": (
                    NO_OBJECT
                    if item["type"] == "model_type"
                    else item["msg"].removeprefix("Value error, ")
                ),
            }
            for item in found[:ERRORS_SHOWN]
        ]
    elif isinstance(cause, TypeError):
        errors = [{"field": "", "message": NO_OBJECT}]
    return problem(
        422,
        "invalid_request",
        "The request has invalid fields. Correct the fields named in `errors`.",
        errors=errors,
    )


def refusal_of_fault(error: RuntimeFault) -> Refusal:
    """Say what an actor means that could not answer."""
    match error:
        case Overloaded():
            return Unavailable(
                "The service is overloaded. Try again after the time in `Retry-After`.",
                code="overloaded",
                retryAfter=max(error.retry_after, 1),
            )
        case ShardUnavailable():
            return Unavailable(
                "The process that handles this is being replaced. Try again in a moment.",
                code="shard_unavailable",
                retryAfter=max(error.retry_after, 1),
            )
        case DeadlineExceeded():
            return Refusal(
                "The request timed out. The operation may still complete; check its status"
                " before you retry.",
                status=504,
                code="deadline_exceeded",
            )
        case Duplicate():
            return Conflict(
                "This request was already processed. Check the result before you send it again.",
                code="duplicate",
            )
        case TurnFailed():
            log.error("request.turn_failed", message=error.message, cause=error.cause)
        case _:
            log.error("request.runtime_fault", fault=type(error).__name__)
    return Refusal(BUG, status=500, code="internal_error")


def refusal_of_storage(error: StorageError) -> Refusal:
    """Say what a database means that is away, is asked too much, or refused what it never should."""
    match error:
        case StorageBusy():
            return Refusal(
                "Your organization is running too many reports at the same time. Try again in a"
                " second.",
                status=429,
                code="too_many_reports",
                retryAfter=1,
            )
        case StorageOverdue():
            log.warning("request.storage_overdue")
            return Unavailable(
                "The database query took too long. Request less data, for example a shorter"
                " period, or try again later.",
                code="storage_overdue",
                retryAfter=5,
            )
        case StorageUnavailable():
            log.warning("request.storage_unavailable", reason=str(error))
            return Unavailable(
                "The database is unreachable. Try again in a moment.",
                code="storage_unavailable",
                retryAfter=1,
            )
        case _:
            log.error("request.storage_failed", exc_info=error)
            return Refusal(BUG, status=500, code="internal_error")


def internal() -> Response:
    """Answer for a bug: no cause, no stack; the request id finds them in the log."""
    return problem(500, "internal_error", BUG)


def http_failed(error: HTTPException) -> Response:
    """Answer for what the framework refuses."""
    status = error.code or 500
    if isinstance(error, NotFound):
        return problem(404, "not_found", "This page or endpoint doesn't exist. Check the address.")
    if isinstance(error, RequestEntityTooLarge):
        return problem(
            413, "payload_too_large", "The request body is too large. Send a smaller one."
        )
    code = HTTPStatus(status).name.lower()
    response = problem(status, code, f"{HTTPStatus(status).phrase}.")
    allowed = getattr(error, "valid_methods", None)
    if allowed:
        response.headers["Allow"] = ", ".join(sorted(allowed))
    return response


def install(app: Quart) -> None:
    """Answer every error of the app in this shape."""

    async def on_refusal(error: Refusal) -> Response:
        return refused(error)

    async def on_processor(error: ProcessorError) -> Response:
        return refused(refusal_of(error))

    async def on_shape(error: RequestSchemaValidationError) -> Response:
        return misshapen(error)

    async def on_fault(error: RuntimeFault) -> Response:
        return refused(refusal_of_fault(error))

    async def on_storage(error: StorageError) -> Response:
        return refused(refusal_of_storage(error))

    async def on_http(error: HTTPException) -> Response:
        return http_failed(error)

    async def on_bug(error: Exception) -> Response:
        log.error("request.failed", path=request.path, method=request.method, exc_info=error)
        return internal()

    app.register_error_handler(Refusal, on_refusal)
    app.register_error_handler(ProcessorError, on_processor)
    app.register_error_handler(RequestSchemaValidationError, on_shape)
    app.register_error_handler(RuntimeFault, on_fault)
    app.register_error_handler(StorageError, on_storage)
    app.register_error_handler(HTTPException, on_http)
    app.register_error_handler(Exception, on_bug)
