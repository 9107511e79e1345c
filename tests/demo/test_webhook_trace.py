"""The bundled example: one webhook's whole trace, through two processes and out to the platform."""

from io import StringIO
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from rich.console import Console

from tolsey.demo.telling import Teller
from tolsey.demo.webhook_trace import NEEDED, free_ports, show

pytestmark = pytest.mark.anyio


async def test_a_webhook_is_one_trace_through_two_processes(tmp_path: Path) -> None:
    written = StringIO()
    trace = await show(free_ports(), tmp_path, Teller(Console(file=written, width=160)))
    (root,) = [told for told in trace if told[1].kind == Span.SPAN_KIND_SERVER]
    for process, span in trace:
        assert span is root[1] or span.parent_span_id == root[1].span_id
        if span.name in NEEDED:  # the store is the other process's
            assert process != root[0]
    kinds = {span.kind for _, span in trace}
    assert Span.SPAN_KIND_CLIENT in kinds  # the platform was asked
    assert "commit" in {span.name for _, span in trace}
    assert written.getvalue().count("second") >= len(NEEDED)
