"""The address an agent posts to: raw ASGI in front of Quart, one exchange at a time, no session.

Model Context Protocol 2026-07-28 and 2025-11-25, "Streamable HTTP"; rules/agents#protocol.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Any, Final, Protocol

import structlog

from tolsey.actors import refusals
from tolsey.actors.refusals import Refusal
from tolsey.http.mcp import envelope, wire
from tolsey.http.mcp.envelope import Request
from tolsey.http.mcp.replies import Reply
from tolsey.http.mcp.server import McpServer
from tolsey.http.mcp.wire import RpcError, error_of
from tolsey.http.web.edge import Headers, Receive, Scope, Send, answer_problem, answer_whole
from tolsey.http.web.json import MalformedJson, parse_any
from tolsey.http.web.refusing.errors import refusal_of_fault, refusal_of_storage
from tolsey.http.webhooks.receiving import Bodies, DeliveryRefused, Gone
from tolsey.runtime.errors import DeadlineExceeded, Overloaded, RuntimeFault, ShardUnavailable
from tolsey.storage.errors import StorageUnavailable

log = structlog.get_logger()

AWAY: Final = (DeadlineExceeded, Overloaded, ShardUnavailable, StorageUnavailable)
"""What says that the service cannot answer now: no bug, and nothing the model could mend."""
BODY_BYTES: Final = 1024 * 1024
"""How large a message may be (rules/requests#sizes)."""
MOST_IN_A_BATCH: Final = 50
QUIET_SECONDS: Final = 0.05
"""Most calls are done by then; only for longer ones it is worth listening whether the client left."""
SLOW_SECONDS: Final = 45.0
"""A call that takes longer is ended: clients and what is between give up after 50 or 60 seconds."""
TOO_SLOW: Final = 504

PREFLIGHT: Final = (
    (b"access-control-allow-methods", b"POST"),
    (
        b"access-control-allow-headers",
        b"authorization, content-type, mcp-protocol-version, mcp-method, mcp-name",
    ),
    (b"access-control-max-age", b"86400"),
)

HERE: Final = re.compile(rb"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?")

Run = Callable[[], Awaitable[Any]]


class Denied(Exception):  # noqa: N818 - an answer
    """Who asks may not, before it is known what they ask: a problem, with the headers of the case."""

    def __init__(
        self, status: int, code: str, detail: str, headers: Headers = (), **fields: Any
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = headers
        self.fields = fields


class AgentGate(Protocol):
    """Decides who comes in, and how often."""

    async def admit(self, scope: Scope) -> Any:
        """Answer who asks, for the address that was called. Raises Denied."""
        ...

    async def count(self, principal: Any, requests: int) -> Headers:
        """Count requests, and answer the headers that tell the standing. Raises RpcError (429)."""
        ...


class OwnAddresses:
    """Which `Host` and `Origin` are ours: a page of elsewhere must not speak for its visitor.

    A service on this machine is ours under every name of this machine, at any port.
    """

    def __init__(self, origins: Sequence[str], *, local: bool) -> None:
        self._origins = frozenset(origin.lower().encode() for origin in origins)
        self._hosts = frozenset(origin.partition(b"://")[2] for origin in self._origins)
        self._local = local

    def check(self, headers: Headers) -> Headers:
        """Refuse a foreign `Origin`, and on this machine a `Host` that is not this machine.

        Answers what lets a page of ours read the answer: nothing where no page asks.
        """
        cors: Headers = ()
        for name, value in headers:
            if name == b"origin":
                if not self._is_ours(value.lower()):
                    raise Denied(
                        403,
                        "foreign_origin",
                        "The Origin header isn't allowed. Send the service's own origin, or none.",
                    )
                cors = (
                    (b"access-control-allow-origin", value),
                    (b"access-control-expose-headers", b"www-authenticate, retry-after"),
                    (b"vary", b"origin"),
                )
            if name == b"host" and self._local and not self._is_here(value.lower()):
                raise Denied(
                    403,
                    "foreign_host",
                    "The Host header doesn't name this machine. Use localhost or the service's"
                    " own host.",
                )
        return cors

    def _is_here(self, host: bytes) -> bool:
        return host in self._hosts or HERE.fullmatch(host) is not None

    def _is_ours(self, origin: bytes) -> bool:
        if origin in self._origins:
            return True
        return self._local and HERE.fullmatch(origin.removeprefix(b"http://")) is not None


class Endpoint:
    """Serves one registry at every address that its gate knows."""

    def __init__(
        self, server: McpServer, gate: AgentGate, places: OwnAddresses, bodies: Bodies | None = None
    ) -> None:
        self._server = server
        self._gate = gate
        self._places = places
        self._bodies = bodies or Bodies(BODY_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request."""
        cors: Headers = ()
        try:
            cors = self._places.check(scope["headers"])
            if cors and scope["method"] == "OPTIONS":
                await answer_whole(send, 204, (*cors, *PREFLIGHT))
                return
            _require_post(scope)
            principal = await self._gate.admit(scope)
            _require_json(scope["headers"])
            body = await self._bodies.take(scope, receive)
            reply = self._reply_to(scope, send, cors)
            await self._exchange(scope["headers"], receive, reply, principal, body)
        except Denied as denied:
            await answer_denied(scope, send, denied, cors)
        except DeliveryRefused as refused:
            answer = Denied(refused.status, refused.code, refused.detail, (), **refused.fields)
            await answer_denied(scope, send, answer, cors)
        except Gone:
            return

    def _reply_to(self, scope: Scope, send: Send, headers: Headers) -> Reply:
        """Make what carries the answer; an endpoint whose tools speak before it makes another."""
        del scope
        return Reply(send, headers)

    async def _exchange(
        self, headers: Headers, receive: Receive, reply: Reply, principal: Any, body: bytes
    ) -> None:
        message: Any = None
        try:
            message = _parsed(body)
            revision = envelope.revision_of(headers)
            if isinstance(message, list) and revision == wire.BATCHING:
                requests = [envelope.read(one, headers, revision) for one in _batch(message)]
            else:
                requests = [envelope.read(message, headers, revision)]
            asked = [one for one in requests if one.id is not None]
            if not asked:
                await reply.answer(None, HTTPStatus.ACCEPTED)
                return
            reply.headers = (*reply.headers, *await self._gate.count(principal, len(asked)))
        except RpcError as error:
            status = error.status or wire.STATUSES.get(error.code, 400)
            await reply.refuse(error, envelope.id_of(message), status)
            return
        done: list[tuple[dict[str, Any], RpcError | None]] = []

        async def run() -> None:
            for one in asked:
                done.append(await self._answered(one, principal))

        await _watched(run, reply, receive)
        if reply.is_left:
            return
        done += [_too_slow(one) for one in asked[len(done) :]]
        if isinstance(message, list):
            await reply.answer([answer for answer, _ in done])
            return
        answer, failed = done[0]
        status = failed.status_for(asked[0].revision) if failed else 200
        await reply.answer(answer, status, failed.headers if failed else ())

    async def _answered(
        self, request: Request, principal: Any
    ) -> tuple[dict[str, Any], RpcError | None]:
        """Answer one request, whatever comes of it; the client never sees what went wrong inside."""
        try:
            result = await self._server.answer(request, principal)
        except RpcError as error:
            return error.body(request.id), error
        except AWAY as error:
            away = error_of(_refusal_of(error))
            return away.body(request.id), away
        except Exception:
            log.exception("mcp.request_failed", method=request.method)
            failed = RpcError(
                wire.INTERNAL_ERROR,
                "Something went wrong on our side. Try again, and quote the request id if you"
                " contact support.",
            )
            return failed.body(request.id), failed
        return {"jsonrpc": "2.0", "id": request.id, "result": result}, None


def _refusal_of(error: RuntimeFault | StorageUnavailable) -> Refusal:
    """Say when to come again; a tool that changes something has said by itself that it goes on."""
    if isinstance(error, StorageUnavailable):
        return refusal_of_storage(error)
    if isinstance(error, DeadlineExceeded):
        return refusals.Unavailable(
            "The request timed out. Try again.", code="deadline_exceeded", retryAfter=1
        )
    return refusal_of_fault(error)


async def _watched(run: Run, reply: Reply, receive: Receive) -> None:
    """Run an exchange, unless the client goes away (2026-07-28, "Cancellation") or it takes too long."""
    loop = asyncio.get_running_loop()
    watching: list[asyncio.Task[None]] = []
    try:
        async with asyncio.timeout(None) as bound:
            quiet = loop.call_later(
                QUIET_SECONDS,
                lambda: watching.append(loop.create_task(_watch(bound, reply, receive))),
            )
            try:
                await run()
            finally:
                quiet.cancel()
                for task in watching:
                    task.cancel()
                    await asyncio.wait({task})
    except TimeoutError:
        if not bound.expired():
            raise


async def _watch(bound: asyncio.Timeout, reply: Reply, receive: Receive) -> None:
    """End an exchange's time when the client goes away, or has waited too long."""
    gone = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({gone}, timeout=SLOW_SECONDS)
        reply.is_left = gone.done()
        bound.reschedule(0.0)
    finally:
        gone.cancel()
        await asyncio.wait({gone})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _parsed(body: bytes) -> Any:
    try:
        return parse_any(body)
    except MalformedJson as error:
        raise RpcError(wire.PARSE_ERROR, str(error)) from error


def _batch(messages: list[Any]) -> list[Any]:
    if not 0 < len(messages) <= MOST_IN_A_BATCH:
        raise RpcError(
            wire.INVALID_REQUEST,
            f"The batch has an invalid size. Send 1 to {MOST_IN_A_BATCH} messages.",
        )
    if any(isinstance(one, dict) and one.get("method") == "initialize" for one in messages):
        raise RpcError(wire.INVALID_REQUEST, "initialize can't be part of a batch. Send it alone.")
    return messages


def _too_slow(request: Request) -> tuple[dict[str, Any], RpcError]:
    log.warning("mcp.too_slow", method=request.method)
    message = f"The call took longer than {SLOW_SECONDS:.0f} seconds and was ended."
    error = RpcError(TOO_SLOW, message, {"code": "too_slow"}, status=TOO_SLOW)
    return error.body(request.id), error


def _require_post(scope: Scope) -> None:
    if scope["method"] != "POST":
        detail = "This endpoint accepts POST only. It has no event stream and no sessions."
        raise Denied(405, "method_not_allowed", detail, ((b"allow", b"POST"),))


def _require_json(headers: Headers) -> None:
    sent = next((value for name, value in headers if name == b"content-type"), b"")
    if sent.partition(b";")[0].strip().lower() != b"application/json":
        raise Denied(
            415,
            "unsupported_media_type",
            "The message has the wrong content type. Send it as application/json.",
        )


async def answer_denied(scope: Scope, send: Send, denied: Denied, cors: Headers = ()) -> None:
    """Send a refusal as a problem (RFC 9457)."""
    await answer_problem(
        send,
        scope,
        denied.status,
        denied.code,
        denied.detail,
        headers=(*denied.headers, *cors),
        fields=denied.fields,
    )
