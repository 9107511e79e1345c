"""A start: all that takes long is done before the process takes slots, so that its lease holds."""

from collections.abc import Callable
from typing import Any

import anyio
import orjson
import pytest
import structlog

from tests.journeys.conftest import ServiceProcess
from tolsey.http.app import create_app
from tolsey.http.mcp.opening import opened
from tolsey.runtime.shards.shard import Shard
from tolsey.service import running, starting
from tolsey.settings import Settings


async def test_routes_templates_and_tools_are_ready_before_slots_are_taken(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []

    def recorded(name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def record(*given: Any, **options: Any) -> Any:
            steps.append(name)
            return step(*given, **options)

        return record

    monkeypatch.setattr(starting, "opened", recorded("tools", opened))
    monkeypatch.setattr(starting, "create_app", recorded("app", create_app))
    monkeypatch.setattr(Shard, "__aenter__", recorded("join", Shard.__aenter__))
    async with running(settings):
        assert steps == ["tools", "app", "join"]


async def test_a_clean_start_and_end_log_no_warning(settings: Settings) -> None:
    with structlog.testing.capture_logs() as written:
        async with running(settings) as service:
            assert service.service.shard.leased
    assert [entry for entry in written if entry["log_level"] not in {"debug", "info"}] == []


async def test_a_process_that_starts_cleanly_logs_no_warning(process: ServiceProcess) -> None:
    await anyio.to_thread.run_sync(process.start)
    assert await anyio.to_thread.run_sync(process.terminate) == 0
    written = [orjson.loads(line) for line in process.log.read_text().splitlines()]
    assert [entry for entry in written if entry["level"] not in {"debug", "info"}] == []
    assert written[-1]["event"] == "service.stopped"
