"""One webhook's whole trace, printed: `python -m tolsey.demo.webhook_trace`.

Two processes of the service share the stores, and a collector of our own takes the spans of both. A shop edits an
order: the platform's signed delivery comes to the first process, the store's turn and its commit happen in the second,
which then asks the platform what the order is now and takes the answer in another turn. All of it is one trace.
"""

import asyncio
import json
import socket
import sys
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tolsey import logs, settings
from tolsey.demo.browser import browsing
from tolsey.demo.run import Demo
from tolsey.demo.seller import Seller
from tolsey.demo.standins import Ports, standing_in
from tolsey.demo.telling import Teller, until
from tolsey.runtime.turns.mailbox import slot_of
from tolsey.sandbox.commerce.course.life import Item
from tolsey.service import Running, running

NEIGHBOUR: Final = "--neighbour"
WEBHOOK: Final = "/api/webhooks/commerce/events"
NEEDED: Final = frozenset({"OrderEdited", "ReadOrder", "OrderRead"})
"""Of the trace of an edit: the turn of the delivery, the call that follows, the turn of its answer."""
SECOND: Final = 10**9
MILLISECOND: Final = 10**6

Told = tuple[str, Span]
"""A span, and the process that told it."""


@dataclass
class SpanCollector:
    """What an OpenTelemetry collector is told, by trace."""

    traces: defaultdict[str, list[Told]] = field(default_factory=lambda: defaultdict(list))

    def take(self, body: bytes) -> None:
        """Keep the spans of a request (OTLP over HTTP)."""
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            said = {one.key: one.value.string_value for one in resource.resource.attributes}
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self.traces[span.trace_id.hex()].append((said["service.instance.id"], span))

    @contextmanager
    def listening(self) -> Iterator[str]:
        """Listen at the address that is given."""
        take = self.take

        class Taking(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                take(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Taking) as server:
            Thread(target=server.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{server.server_port}"
            server.shutdown()

    async def edit(self) -> list[Told] | None:
        """Give the trace of an edit once all of it was told, in the order in which it began."""
        for spans in list(self.traces.values()):
            names = {span.name for _, span in spans}
            roots = [span for _, span in spans if span.kind == Span.SPAN_KIND_SERVER]
            if names >= NEEDED and roots and WEBHOOK in roots[0].name:
                return sorted(spans, key=lambda told: told[1].start_time_unix_nano)
        return None


@asynccontextmanager
async def neighbour(given: Mapping[str, Any]) -> AsyncIterator[str]:
    """Run a second process of the service beside this one; gives its id."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tolsey.demo.webhook_trace",
        NEIGHBOUR,
        json.dumps(given),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - pipes were asked for
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.stdin.close()
        await process.wait()


async def be_neighbour(given: Mapping[str, Any]) -> None:
    """Be that process until its input ends."""
    logs.configure("error")
    async with running(settings.read(**given)) as service:
        sys.stdout.write(f"{service.service.shard.id}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


async def show(ports: Ports, data_dir: Path, teller: Teller) -> list[Told]:
    """Let a webhook pass through two processes; answers its trace, which is printed."""
    logs.configure("error")
    collector = SpanCollector()
    with collector.listening() as url:
        async with standing_in(ports, 5) as others:
            given = {
                "base_url": ports.base,
                "data_dir": str(data_dir),
                "otel_exporter_otlp_endpoint": url,
                **others.settings,
            }
            async with (
                running(settings.read(**given)) as first,
                Demo(ports, 5, data_dir, teller=teller).served(first),
                neighbour(given) as second,
                browsing(ports.base) as browser,
            ):
                seller = Seller(browser)
                await teller.step("An account signs up", seller.sign_up)
                shop = others.trade.shop
                await teller.step("A store connects", lambda: seller.connect(shop))
                await _hand_over(first, seller.store_id, second)
                teller.done("The store is the second process's; its webhooks come to the first")
                await others.trade.subscribed("orders/edited")
                order = next(iter(shop.orders.values()))
                variant = order.lines[0]
                others.trade.platform.edit_order(
                    shop.spec.domain, order.id, (Item(title=variant.title),)
                )
                trace = await until(collector.edit, "the trace of an edited order")
                names = {first.service.shard.id: "first", second: "second"}
    _print(trace, names, teller)
    return trace


async def _hand_over(first: Running, store_id: str, to: str) -> None:
    """Give a store's slot to a process."""
    slot, shard = slot_of(store_id), first.service.shard

    async def moved() -> bool | None:
        try:
            await shard.move(slot, to)
        except LookupError:  # it has not joined yet
            return None
        holding = shard.holdings.get(slot)
        return (holding is not None and holding.owner == to) or None

    await until(moved, "the hand-over of a store")


def _print(trace: list[Told], names: Mapping[str, str], teller: Teller) -> None:
    """Write each span below what caused it: where it was, when it began and how long it took."""
    known = {span.span_id: span for _, span in trace}
    began = min(span.start_time_unix_nano for _, span in trace)
    teller.chapter(f"trace {trace[0][1].trace_id.hex()}")
    for process, span in trace:
        depth, above = 0, known.get(span.parent_span_id)
        while above is not None:
            depth, above = depth + 1, known.get(above.parent_span_id)
        after = (span.start_time_unix_nano - began) / MILLISECOND
        took = (span.end_time_unix_nano - span.start_time_unix_nano) / MILLISECOND
        where = names.get(process, process)
        teller.say(f"{after:9.1f} ms  {took:8.2f} ms  {where:<6}  {'  ' * depth}{span.name}")


def free_ports() -> Ports:
    """Find ports that nobody listens on."""
    with ExitStack() as stack:
        taken = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(4)]
        return Ports(*(one.getsockname()[1] for one in taken))


def main() -> None:
    """Show it, or be the second process."""
    if sys.argv[1:2] == [NEIGHBOUR]:
        asyncio.run(be_neighbour(json.loads(sys.argv[2])))
        return
    with tempfile.TemporaryDirectory(prefix="tolsey-trace-") as folder:
        asyncio.run(show(free_ports(), Path(folder), Teller()))


if __name__ == "__main__":
    main()
