"""What it costs a durable turn to be traced, and to keep the way back to the state before it.

Every asker has a counter of its own and asks again when it has its answer, as in `bench.turns`. Traced, each turn and
commit becomes a span that is encoded as OTLP by the exporter's thread, and then dropped. With history, each turn keeps
what it changed with its line of the journal. A `book` holds 64 lines and changes one of them in each turn. What is told is
processor time of our process, all its threads: others on the machine move that least.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from time import process_time
from typing import Any

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from bench import measure
from bench.counter import TABLE, Raise, counter, runtime_on
from bench.owner import opened, owning
from tolsey.runtime.actor import Actor, handles
from tolsey.runtime.decision import Decision
from tolsey.runtime.messages import ActorId, Message
from tolsey.runtime.registry import Runtime
from tolsey.runtime.turns.scheduler import REQUEST_ID
from tolsey.storage.database import Database
from tolsey.storage.migrate import migrate
from tolsey.tracing import Tracing

KIND = "book"
KEPT = """
SELECT kind, avg(pg_column_size(way_back)) AS bytes, avg(pg_column_size(j.*)) AS line
FROM actor_journal j WHERE way_back IS NOT NULL GROUP BY 1 ORDER BY 1
"""
LINES = 64
ASKERS = (1, 64)


@dataclass(frozen=True, slots=True)
class BookLine:
    """A part of a larger state."""

    id: str
    said: str
    n: int = 0


@dataclass(frozen=True, slots=True)
class BookState:
    """A state with many parts."""

    key: str
    total: int = 0
    lines: tuple[BookLine, ...] = tuple(BookLine(str(n), "x" * 40) for n in range(LINES))


@dataclass(frozen=True, slots=True)
class WriteLine(Message[int]):
    """Change one line."""


class BookActor(Actor[BookState]):
    """Keeps a book in memory; a line of the journal is all that its turns write."""

    kind = KIND

    async def load(self, keys: Sequence[str]) -> Mapping[str, BookState]:
        """Begin anew."""
        return {key: BookState(key) for key in keys}

    def changes(self, old: BookState, new: BookState) -> Iterable[Any]:
        """Write nothing beside."""
        del old, new
        return ()

    @handles(WriteLine)
    def write(self, state: BookState, message: WriteLine) -> Decision[BookState, int]:  # noqa: ARG002 - a turn's shape
        """Change one line."""
        at, total = state.total % LINES, state.total + 1
        line = replace(state.lines[at], n=total)
        lines = (*state.lines[:at], line, *state.lines[at + 1 :])
        return Decision(BookState(state.key, total, lines), total)


class EncodingExporter(SpanExporter):
    """Encodes spans as they are sent to a collector, and drops them."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Encode them."""
        encode_spans(spans).SerializePartialToString()
        return SpanExportResult.SUCCESS


SPANS = BatchSpanProcessor(EncodingExporter())


async def turns(runtime: Runtime, to: str, askers: int, asks: int, *, named: bool) -> float:
    message: Message[int] = Raise() if to == "counter" else WriteLine()

    async def one(n: int) -> None:
        me = counter(f"{to}-{n}") if to == "counter" else ActorId(KIND, f"{to}-{n}")
        for number in range(asks):
            if named:
                REQUEST_ID.set(f"req-{n}-{number}")
            await runtime.ask(me, message)

    started = process_time()
    await asyncio.gather(*(one(n) for n in range(askers)))
    if runtime.telemetry.trace is not None:
        runtime.telemetry.fold()
        await asyncio.to_thread(SPANS.force_flush)
    return (process_time() - started) / (askers * asks) * 1e6


async def compare(url: str, *, quick: bool) -> None:
    rows: list[list[object]] = []
    await migrate(url)
    async with AsyncExitStack() as stack:
        database, journal = await opened(stack, url)
        await database.execute(TABLE)
        tracing = Tracing(SPANS, "bench")
        for to in ("counter", "book"):
            for askers in ASKERS:
                found = await measured(database, journal, tracing, to, askers, quick=quick)
                times = (f"{found[name] / found['plain']:.2f}" for name in ("traced", "history"))
                rows.append([to, f"{askers:,}", *(f"{one:,.0f}" for one in found.values()), *times])
        kept = await database.fetch(KEPT)
    measure.table(
        "Microseconds of our processor time for a durable turn (medians), and how many times those of a plain one",
        ["state", "askers", "plain", "traced", "history", "traced", "history"],
        rows,
    )
    measure.table(
        "Bytes that a turn of a kind in HISTORY_KINDS keeps for a week, and with its line of the journal",
        ["state", "way back", "line"],
        [[row["kind"], f"{row['bytes']:,.0f}", f"{row['line']:,.0f}"] for row in kept],
    )


async def measured(
    database: Database, journal: Any, tracing: Tracing, to: str, askers: int, *, quick: bool
) -> dict[str, float]:
    asks = (500 if askers == 1 else 8_000) // (10 if quick else 1) // askers

    async def contestant(*, traced: bool = False, history: Sequence[str] = ()) -> float:
        made = (
            await runtime_on(database, journal, history=history)
            if to == "counter"
            else await owning([BookActor()], database, journal, history=history)
        )
        async with made as runtime:
            runtime.telemetry.trace = tracing.step if traced else None
            await turns(runtime, to, askers, 1, named=traced)
            return await turns(runtime, to, askers, asks, named=traced)

    measure.say(f"{to}, {askers:,} askers (microseconds a turn)")
    return dict(
        await measure.alternate(
            {
                "plain": contestant,
                "traced": partial(contestant, traced=True),
                "history": partial(contestant, history=("counter", KIND)),
            },
            1 if quick else 5,
        )
    )


if __name__ == "__main__":
    measure.on_a_database(__doc__, compare)
