"""Traces of what a request causes, as OpenTelemetry spans: its turns, commits, calls and requests to the outside.

A request's id goes with every message, row of the outbox and frame between processes. The ids of its trace follow from
it, so that each process tells its steps without asking, and nothing more is carried.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from hashlib import sha256
from secrets import token_hex
from typing import Any, Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from tolsey.http.clients.counted import TOLD
from tolsey.runtime.telemetry import Telemetry, Traced

SECOND: Final = 10**9
FOLD_SECONDS: Final = 1.0
"""How long a turn may wait until it is told of."""
FAILED: Final = 500

TRACEPARENT: Final = re.compile(rb"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
"""W3C Trace Context, section 3.2."""
CONTINUED: Final = re.compile(r"([0-9a-f]{32})-([0-9a-f]{16})")
KINDS: Final[Mapping[str, SpanKind]] = {
    "turn": SpanKind.CONSUMER,
    "commit": SpanKind.INTERNAL,
    "call": SpanKind.INTERNAL,
    "request": SpanKind.CLIENT,
}
WELL: Final = frozenset({"ok", "refused", "done"})


class Tracing:
    """What a process tells of the requests it works on; `processor` takes finished spans."""

    def __init__(self, processor: SpanProcessor, process: str) -> None:
        self._processor = processor
        self._resource = Resource.create({"service.name": "tolsey", "service.instance.id": process})
        self._scope = InstrumentationScope("tolsey")
        # Spans are told in the time of the wall, steps in that of the event loop.
        self._ahead = time.time() - time.monotonic()

    def request_id(self, headers: list[tuple[bytes, bytes]]) -> tuple[str, bytes] | None:
        """Give an id that goes on with a caller's trace, and the caller's span; none when it sent no trace."""
        sent = [value for name, value in headers if name == b"traceparent"]
        named = TRACEPARENT.fullmatch(sent[0]) if len(sent) == 1 else None
        if named is None or not int(named[1], 16) or not int(named[2], 16):
            return None
        return f"{named[1].decode()}-{token_hex(8)}", named[2]

    def answered(
        self, *, name: str, request_id: str, status: int, seconds: float, caller: bytes | None
    ) -> None:
        """Tell of a request to this service that was answered just now; 0 stands for no answer."""
        own = _context(request_id)
        parent = (
            SpanContext(own.trace_id, int(caller, 16), is_remote=True, trace_flags=own.trace_flags)
            if caller
            else None
        )
        ended = time.time()
        self._tell(
            name,
            own,
            parent,
            kind=SpanKind.SERVER,
            began=ended - seconds,
            ended=ended,
            attributes={"http.response.status_code": status, "tolsey.request_id": request_id},
            is_well=0 < status < FAILED,
        )

    def step(self, traced: Traced) -> None:
        """Tell of a step of the work that a request caused."""
        cause = _context(traced.request_id)
        began = traced.began_at + self._ahead
        of = "messaging.destination.name" if traced.step in {"turn", "commit"} else "tolsey.lane"
        self._tell(
            traced.name,
            SpanContext(
                cause.trace_id, int(token_hex(8), 16), is_remote=False, trace_flags=SAMPLED
            ),
            cause,
            kind=KINDS[traced.step],
            began=began,
            ended=began + traced.seconds,
            attributes={
                "tolsey.step": traced.step,
                "tolsey.outcome": traced.outcome,
                of: traced.of,
            },
            is_well=traced.outcome in WELL or traced.outcome.isdigit(),
        )

    def _tell(
        self,
        name: str,
        own: SpanContext,
        parent: SpanContext | None,
        *,
        kind: SpanKind,
        began: float,
        ended: float,
        attributes: Mapping[str, Any],
        is_well: bool,
    ) -> None:
        # Messaging conventions: what processes a message links to what sent it, beside being its child.
        links = [Link(parent)] if parent is not None and kind is SpanKind.CONSUMER else []
        span = ReadableSpan(
            name,
            context=own,
            parent=parent,
            resource=self._resource,
            attributes=attributes,
            links=links,
            kind=kind,
            status=Status(StatusCode.UNSET if is_well else StatusCode.ERROR),
            start_time=int(began * SECOND),
            end_time=int(ended * SECOND),
            instrumentation_scope=self._scope,
        )
        self._processor.on_end(span)


SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)


def _context(request_id: str) -> SpanContext:
    """Give the span of a request; every process finds the same one."""
    named = CONTINUED.fullmatch(request_id)
    if named is not None:
        trace, span = int(named[1], 16), int(named[2], 16)
    else:
        digest = sha256(request_id.encode()).digest()
        trace, span = int.from_bytes(digest[:16]), int.from_bytes(digest[16:24])
    return SpanContext(trace, span, is_remote=False, trace_flags=SAMPLED)


@asynccontextmanager
async def tracing(endpoint: str, process: str, telemetry: Telemetry) -> AsyncIterator[Tracing]:
    """Send traces to an OpenTelemetry collector (OTLP over HTTP) until the block ends."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - slow to load, and seldom wanted

    processor = BatchSpanProcessor(OTLPSpanExporter(f"{endpoint.rstrip('/')}/v1/traces"))
    traced = Tracing(processor, process)
    telemetry.trace = traced.step
    TOLD.append(traced.step)
    folding = asyncio.ensure_future(_fold(telemetry))
    try:
        yield traced
    finally:
        folding.cancel()
        telemetry.fold()
        telemetry.trace = None
        TOLD.remove(traced.step)
        await asyncio.to_thread(processor.shutdown)


async def _fold(telemetry: Telemetry) -> None:
    while True:
        await asyncio.sleep(FOLD_SECONDS)
        telemetry.fold()
