"""What every receiver does alike: take a bounded body, refuse with a problem, answer once."""

import asyncio
from collections.abc import Awaitable, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import structlog

from tolsey.http.web.edge import Receive, Scope, Send, answer_whole
from tolsey.http.web.refusing.errors import PROBLEM, problem_body
from tolsey.http.web.requests import OUTCOME, REQUEST_ID
from tolsey.http.webhooks.payloads import MalformedPayload, parse

log = structlog.get_logger()

BODY_BYTES: Final = 5 * 1024 * 1024
"""How large a delivery may be (rules/requests#sizes)."""
BODY_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 5


class DeliveryRefused(Exception):  # noqa: N818 - an answer
    """Why a request is not taken."""

    def __init__(self, status: int, code: str, detail: str, **fields: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.fields = fields


class Gone(Exception):  # noqa: N818 - what the sender is
    """The sender went away before the body was whole."""


class ReceiverAnswer(NamedTuple):
    """A ready answer, and the word under which it is counted."""

    outcome: str
    status: int
    body: bytes
    headers: Sequence[tuple[bytes, bytes]]


def said(status: str) -> ReceiverAnswer:
    """Make the answer to what was taken, one way or another."""
    body = b'{"status":"%b"}' % status.encode()
    return ReceiverAnswer(status, 200, body, ((b"content-type", b"application/json"),))


ACCEPTED: Final = said("accepted")
DUPLICATE: Final = said("duplicate")
IGNORED: Final = said("ignored")


def refused(refusal: DeliveryRefused, scope: Scope) -> ReceiverAnswer:
    """Make the answer to what is not taken."""
    request_id = str(scope.get(REQUEST_ID, ""))
    body = problem_body(refusal.status, refusal.code, refusal.detail, request_id, refusal.fields)
    headers = [(b"content-type", PROBLEM.encode())]
    if "retryAfter" in refusal.fields:
        headers.append((b"retry-after", str(refusal.fields["retryAfter"]).encode()))
    if refusal.status == HTTPStatus.METHOD_NOT_ALLOWED:
        headers.append((b"allow", b"POST"))
    return ReceiverAnswer(refusal.code, refusal.status, body, headers)


def unauthorized() -> DeliveryRefused:
    """Refuse without telling whether the shop is known."""
    return DeliveryRefused(
        401,
        "invalid_signature",
        "The delivery's signature is invalid. Check the app's client secret.",
    )


def require_served(scope: Scope, variable: str, *, is_set: bool) -> None:
    """Refuse what is not posted, and everything while the secret that proves senders is not set."""
    if scope["method"] != "POST":
        raise DeliveryRefused(
            405, "method_not_allowed", "Webhooks accept POST only. Send the event with POST."
        )
    if not is_set:
        detail = f"This feature isn't configured on this server: {variable} is not set. Ask the operator to set it."
        raise DeliveryRefused(503, "missing_credential", detail, variable=variable)


def parsed_body(body: bytes) -> dict[str, Any]:
    """Read a proven body as the JSON object that it is to be."""
    try:
        return parse(body)
    except MalformedPayload as error:
        raise DeliveryRefused(
            400, "malformed_payload", f"The request body is {error}. Correct it and send it again."
        ) from error


def storage_unavailable() -> DeliveryRefused:
    """Refuse for now: the platform tries again."""
    return DeliveryRefused(
        503,
        "storage_unavailable",
        "The delivery can't be stored at the moment. Deliver it again later.",
        retryAfter=RETRY_SECONDS,
    )


async def respond(
    answering: Awaitable[ReceiverAnswer], scope: Scope, send: Send, *, failed: str
) -> None:
    """Answer one request, whatever comes of it; a bug is logged under the name in `failed`."""
    try:
        answer = await answering
    except DeliveryRefused as refusal:
        answer = refused(refusal, scope)
    except Gone:
        return
    except Exception:
        log.exception(failed)
        answer = refused(
            DeliveryRefused(
                500, "internal_error", "Something went wrong on our side. Deliver it again later."
            ),
            scope,
        )
    scope[OUTCOME] = answer.outcome
    await answer_whole(send, answer.status, answer.headers, answer.body)


class Bodies:
    """Takes the bodies of requests, as long and as late as they may be."""

    def __init__(self, most_bytes: int = BODY_BYTES, seconds: float = BODY_SECONDS) -> None:
        self._most_bytes = most_bytes
        self._seconds = seconds

    async def take(self, scope: Scope, receive: Receive) -> bytes:
        """Read the whole body. Raises Refused when it is too large or late, Gone when it ends."""
        for name, value in scope["headers"]:
            if name == b"content-length" and len(value) >= len(str(self._most_bytes)):
                if not value.isdigit() or int(value[:20]) > self._most_bytes:
                    raise self._too_large()
                break
        try:
            async with asyncio.timeout(self._seconds):
                event = await receive()
                body: bytes = event.get("body", b"")
                if event["type"] == "http.disconnect":
                    raise Gone
                if event.get("more_body"):
                    body = await self._rest(body, receive)
        except TimeoutError as error:
            raise DeliveryRefused(
                408, "body_timeout", "The request body didn't arrive in time. Deliver it again."
            ) from error
        if len(body) > self._most_bytes:
            raise self._too_large()
        return body

    async def _rest(self, first: bytes, receive: Receive) -> bytes:
        parts, size = [first], len(first)
        while True:
            event = await receive()
            if event["type"] == "http.disconnect":
                raise Gone
            part = event.get("body", b"")
            parts.append(part)
            size += len(part)
            if size > self._most_bytes:
                raise self._too_large()
            if not event.get("more_body"):
                return b"".join(parts)

    def _too_large(self) -> DeliveryRefused:
        return DeliveryRefused(
            413,
            "payload_too_large",
            f"The delivery exceeds {self._most_bytes} bytes. Deliver a smaller payload.",
        )
