"""The outermost layer: plain ASGI that sends each request to a receiver or to Quart.

Here is what holds for every answer alike: the request's id, the security headers, the bounds of a
request's head (RFC 9112 section 6.1, RFC 6585 section 5), and a last answer when all else failed.
"""

import asyncio
import contextlib
import math
import re
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any, TypeAlias

import structlog

from tolsey.http.web.refusing.errors import PROBLEM, problem_body
from tolsey.http.web.requests import CALLER_SPAN, REQUEST_ID, ROUTE, RequestTally
from tolsey.runtime.ids import new_id
from tolsey.runtime.turns.scheduler import REQUEST_ID as CURRENT_REQUEST
from tolsey.storage import database

Scope: TypeAlias = MutableMapping[str, Any]
Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]
Headers: TypeAlias = Sequence[tuple[bytes, bytes]]
ASGIApp: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

MAXIMUM_HEADERS = 100
MAXIMUM_HEADER_BYTES = 16 * 1024
DROPPED_BYTES = 1024 * 1024
DROP_SECONDS = 2.0
"""How long an answer waits for the rest of a body that nobody reads, and once more before the end."""
CLOSE = (b"connection", b"close")
NO_CONTENT = 204
SANE_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")

CONTENT_SECURITY_POLICY = (
    b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; "
    b"report-uri /api/security/csp-report"
)
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", CONTENT_SECURITY_POLICY),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
"""Sent with every answer unless it has its own."""
STRICT_TRANSPORT = (b"strict-transport-security", b"max-age=31536000; includeSubDomains")

NOTHING: Mapping[str, Any] = {}
NAMELESS = frozenset({"/api/health", "/metrics"})
"""What machines ask for by the address of one process, under whatever name (rules/requests#sizes)."""
MISDIRECTED = 421

Hosts: TypeAlias = Callable[[ASGIApp], Mapping[bytes, ASGIApp]]
"""Given what serves the main address by path, who serves which other host."""

log = structlog.get_logger()


class UnreadBody:
    """What of a request's body is still to come; HTTP/1 takes no other request before its end.

    An application reads through `receive`, and what it leaves is read here and dropped.
    """

    def __init__(self, receive: Receive, length: int | None) -> None:
        self._receive = receive
        self._length = length
        self._reading = asyncio.Lock()  # Quart reads on while it answers
        self.ended = False

    @classmethod
    def of(cls, scope: Scope, receive: Receive) -> "UnreadBody | None":
        """Watch the body of a request; None when it has none, or needs no watch."""
        if not scope.get("http_version", "").startswith("1"):
            return None
        length: int | None = 0
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit():
                length = int(value)
            elif name == b"transfer-encoding":
                return cls(receive, None)
        return cls(receive, length) if length else None

    async def receive(self) -> Event:
        """Take the next event of the request."""
        return await self._next() or await self._receive()

    async def drop(self, most_bytes: float = math.inf) -> bool:
        """Read the rest and keep nothing of it; say whether that was all of it."""
        if self._length is not None and self._length > most_bytes:
            return self.ended
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DROP_SECONDS):
                while most_bytes >= 0 and (event := await self._next()):
                    most_bytes -= len(event.get("body", b""))
        return self.ended

    async def _next(self) -> Event | None:
        """Take the next event of the body; None once it ended, which another reader may have seen."""
        async with self._reading:
            if self.ended:
                return None
            event = await self._receive()
            self.ended = not event.get("more_body")
            return event


class Edge:
    """The service as one ASGI application.

    `receivers` serve an exact path each, `mounted` all paths that begin like theirs, and `hosts` every
    path of a host of their own. A public service is `public_host` and these, and no other; on its own
    machine it is whatever it is called there.
    """

    def __init__(
        self,
        application: ASGIApp,
        receivers: Mapping[str, ASGIApp],
        *,
        is_https: bool,
        mounted: Mapping[str, ASGIApp] = NOTHING,
        hosts: Hosts | None = None,
        public_host: str | None = None,
        requests: RequestTally | None = None,
    ) -> None:
        self.application = application
        self._requests = requests or RequestTally()
        self.receivers = dict(receivers)
        self._mounted = tuple(mounted.items())
        self._default_port = b"443" if is_https else b"80"
        self._is_public = public_host is not None
        self._own = self._canonical((public_host or "").encode())
        others = hosts(self._serve_path) if hosts is not None else {}
        self._hosts = {self._canonical(host): served for host, served in others.items()}
        self._headers = (*HEADERS, STRICT_TRANSPORT) if is_https else HEADERS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "lifespan":
            await self.application(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = self._request_id(scope)
        scope[REQUEST_ID] = request_id
        # Messages and effects of this request carry it on; each request is a task of its own.
        CURRENT_REQUEST.set(request_id)
        structlog.contextvars.bind_contextvars(request_id=request_id)
        body = UnreadBody.of(scope, receive)
        closes = False
        status, began = 0, time.perf_counter()

        async def dressed(event: Event) -> None:
            nonlocal status, closes
            if event["type"] == "http.response.start":
                status = event["status"]
                headers = self._dress(event.get("headers", ()), request_id)
                if status == NO_CONTENT:
                    # RFC 9110, section 8.6: an answer of this status has no length to say.
                    headers = [pair for pair in headers if pair[0] != b"content-length"]
                if body is not None and not body.ended:
                    # RFC 9112 section 9.6: what ends the connection is said, and said only then.
                    closes = CLOSE in headers or not await body.drop(DROPPED_BYTES)
                    if closes and CLOSE not in headers:
                        headers.append(CLOSE)
                event = {**event, "headers": headers}
            elif closes and body is not None and not event.get("more_body"):
                await send({**event, "more_body": True})
                await body.drop()  # closing at once would reset the connection, and lose the answer
                event = {"type": "http.response.body"}
            await send(event)

        self._requests.active += 1
        try:
            with database.patience(database.REQUEST_SECONDS):
                await self._pass_on(scope, receive if body is None else body.receive, dressed)
        except Exception:
            log.exception("request.failed", path=scope["path"], method=scope["method"])
            if status:
                raise
            sentence = "Something went wrong on our side. Try again, and quote the request id if you contact support."
            await answer_problem(dressed, scope, 500, "internal_error", sentence)
        finally:
            self._requests.active -= 1
            self._requests.note(scope, status, time.perf_counter() - began)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Have a request answered by whom it is for, or refused."""
        refusal = _refusal(scope)
        if refusal is None:
            await self._server_of(scope)(scope, receive, send)
        else:
            status, code, detail, ends = refusal
            closes = (CLOSE,) if ends else ()
            await answer_problem(send, scope, status, code, detail, headers=closes)

    async def _serve_path(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with what is at a path of the main address."""
        path = scope["path"]
        for prefix, application in self._mounted:
            if path.startswith(prefix):
                scope[ROUTE] = f"{prefix}<path>"
                await application(scope, receive, send)
                return
        receiver = self.receivers.get(path)
        if receiver is not None:
            scope[ROUTE] = path
        await (receiver or self.application)(scope, receive, send)

    def _server_of(self, scope: Scope) -> ASGIApp:
        """Say who serves a request."""
        called = next((value for name, value in scope["headers"] if name == b"host"), b"")
        host = self._canonical(called)
        if host in self._hosts:
            scope[ROUTE] = f"//{host.decode()}/<path>"
            return self._hosts[host]
        # RFC 9110, section 15.5.20: under a name that is not ours an answer would be somebody else's.
        if self._is_public and host != self._own and scope["path"] not in NAMELESS:
            return _answer_misdirected
        return self._serve_path

    def _canonical(self, host: bytes) -> bytes:
        """Write a host in the one form of all that mean it: in lower case, without what need not be said.

        The default port (RFC 9110, section 4.2.3) and the dot of the root (RFC 3986, section 3.2.2). On
        its own machine a service is the same at whichever port it is found.
        """
        name, _, port = host.lower().rpartition(b":")
        if not name or (
            port and not port.isdigit()
        ):  # no port; an address in brackets holds colons
            return host.lower().removesuffix(b".")
        name = name.removesuffix(b".")
        is_said = self._is_public and port not in (b"", self._default_port)
        return name + b":" + port if is_said else name

    def _request_id(self, scope: Scope) -> str:
        sent = [value for name, value in scope["headers"] if name == b"x-request-id"]
        if len(sent) == 1 and SANE_REQUEST_ID.fullmatch(sent[0]):
            return bytes(sent[0]).decode()
        if self._requests.tracing is not None:
            continued = self._requests.tracing.request_id(scope["headers"])
            if continued is not None:
                request_id, scope[CALLER_SPAN] = continued
                return request_id
        return new_id("req")

    def _dress(self, headers: Any, request_id: str) -> list[tuple[bytes, bytes]]:
        given = [(bytes(name).lower(), bytes(value)) for name, value in headers]
        names = {name for name, _ in given}
        kept = [pair for pair in given if pair[0] not in {b"server", b"x-request-id"}]
        kept.extend(pair for pair in self._headers if pair[0] not in names)
        kept.append((b"x-request-id", request_id.encode()))
        return kept


def _refusal(scope: Scope) -> tuple[int, str, str, bool] | None:
    """Say why the head of a request is refused: status, code, detail, whether its connection ends."""
    headers = scope["headers"]
    ends = scope.get("http_version") != "2"  # whose connections carry others' requests, too
    size = sum(len(name) + len(value) + 4 for name, value in headers)
    if len(headers) > MAXIMUM_HEADERS or size > MAXIMUM_HEADER_BYTES:
        return (
            431,
            "request_header_fields_too_large",
            "The request's headers are too large. Send fewer or shorter headers.",
            ends,
        )
    names = [name.lower() for name, _ in headers]
    lengths = {value for name, value in headers if name.lower() == b"content-length"}
    if (lengths and b"transfer-encoding" in names) or len(lengths) > 1:
        return (
            400,
            "ambiguous_length",
            "The request has both Content-Length and Transfer-Encoding. Send only one of them.",
            ends,
        )
    hosts = [value for name, value in headers if name.lower() == b"host"]
    # RFC 9112, section 3.2: two lines are refused even when they agree; HTTP/2 may repeat its authority.
    if len(set(hosts)) > 1 or (len(hosts) > 1 and ends):
        return (
            400,
            "ambiguous_host",
            "The request has more than one Host header. Send only one.",
            ends,
        )
    # An HTTP/2 connection says "2"; "2.0" is its preface, in one that speaks HTTP/1.
    if scope.get("http_version") == "2.0":
        return (
            505,
            "http_version_not_supported",
            "The HTTP version isn't supported. Use HTTP/1.1.",
            ends,
        )
    if "\x00" in scope["path"] or b"%00" in scope.get("query_string", b""):
        return 400, "bad_request", "The URL contains a NUL character. Remove it.", False
    return None


async def _answer_misdirected(scope: Scope, receive: Receive, send: Send) -> None:
    del receive
    sentence = "This service doesn't answer for the requested host. Use the service's own address."
    await answer_problem(send, scope, MISDIRECTED, "misdirected_request", sentence)


async def answer_problem(
    send: Send,
    scope: Scope,
    status: int,
    code: str,
    detail: str,
    *,
    headers: Headers = (),
    fields: Mapping[str, Any] = NOTHING,
) -> None:
    """Send a problem (RFC 9457) from where no view answers."""
    body = problem_body(status, code, detail, str(scope.get(REQUEST_ID, "")), fields)
    await answer_whole(send, status, ((b"content-type", PROBLEM.encode()), *headers), body)


async def answer_whole(send: Send, status: int, headers: Headers, body: bytes = b"") -> None:
    """Send an answer in one piece, with its length."""
    sized = [*headers, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": sized})
    await send({"type": "http.response.body", "body": body})
