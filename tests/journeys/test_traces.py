"""Traces: what a request caused in every process arrives at a collector, under the caller's trace where it sent one."""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.journeys.conftest import sign_up
from tests.journeys.neighbours import shared
from tolsey.runtime.turns.mailbox import slot_of
from tolsey.service import running
from tolsey.settings import Settings

SELLERS = 4
CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@dataclass
class Collector:
    """What an OpenTelemetry collector was told: spans, and which process told each, by trace."""

    traces: defaultdict[str, list[tuple[str, Span]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def take(self, body: bytes) -> None:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            said = {one.key: one.value.string_value for one in resource.resource.attributes}
            for scope in resource.scope_spans:
                for span in scope.spans:
                    told = (said["service.instance.id"], span)
                    self.traces[span.trace_id.hex()].append(told)

    @contextmanager
    def listening(self) -> Iterator[str]:
        """Take spans as OTLP over HTTP at the address that is given."""
        collector = self

        class Taking(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.path == "/v1/traces"
                collector.take(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Taking) as server:
            thread = Thread(target=server.serve_forever)
            thread.start()
            yield f"http://127.0.0.1:{server.server_port}"
            server.shutdown()
            thread.join()


def said_of(span: Span) -> str:
    """Tell whose turn it was."""
    said = {one.key: one.value.string_value for one in span.attributes}
    return str(said["messaging.destination.name"])


async def test_each_request_is_a_whole_trace_across_processes(brisk: Settings) -> None:
    collector, owners = Collector(), dict[str, str]()
    with collector.listening() as url:
        traced = brisk.model_copy(update={"otel_exporter_otlp_endpoint": url})
        start = partial(running, traced, timers=False, poll_seconds=0.1)
        async with (
            start() as one,
            start() as other,
            httpx.AsyncClient(
                transport=httpx.ASGITransport(one.app),
                base_url=traced.base_url,
                headers={"Origin": traced.base_url},
            ) as browser,
        ):
            await shared(one, other)
            for n in range(SELLERS):
                seller = await sign_up(browser, f"seller{n}@example.com")
                path = f"/api/stores/{seller.store_id}/memory/facts/brand.name"
                answer = await browser.put(path, json={"value": "v"})
                assert answer.status_code in {200, 201}, answer.text
                here = one.service.runtime.slots.owns(slot_of(seller.store_id))
                owners[f"store:{seller.store_id}"] = (one if here else other).service.shard.id
            continued = await browser.get("/api/account", headers={"traceparent": CALLER})

    assert continued.headers["x-request-id"].startswith("4bf92f3577b34da6a3ce929d0e0e4736-")
    (caller_seen,) = collector.traces["4bf92f3577b34da6a3ce929d0e0e4736"]
    assert caller_seen[1].parent_span_id.hex() == "00f067aa0ba902b7"
    roots = {
        trace: [span for _, span in spans if span.kind == Span.SPAN_KIND_SERVER]
        for trace, spans in collector.traces.items()
    }
    kept = [
        spans for spans in collector.traces.values() if any("memory" in s.name for _, s in spans)
    ]
    assert len(kept) == SELLERS
    for spans in kept:
        (root,) = [span for _, span in spans if span.kind == Span.SPAN_KIND_SERVER]
        for _, span in spans:
            assert span is root or span.parent_span_id == root.span_id
        turns = [span for _, span in spans if span.kind == Span.SPAN_KIND_CONSUMER]
        assert turns
        assert all(span.links[0].span_id == root.span_id for span in turns)
        assert [span.name for _, span in spans].count("commit") >= 1
        told = {said_of(span): process for process, span in spans if span in turns}
        assert told == {store: owners[store] for store in told}
    assert all(len(found) <= 1 for found in roots.values())
