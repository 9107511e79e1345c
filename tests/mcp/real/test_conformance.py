"""The official conformance suite against the service itself: its authorization server, a real store."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest

from tests.journeys.conftest import free_port
from tests.mcp.conformance import suite
from tests.mcp.real import visits
from tests.mcp.real.served_stores import ServedStores
from tolsey.server import serve_app

pytestmark = pytest.mark.usefixtures("node")

MODERN = (
    "server-stateless",
    "tools-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
    "caching",
    "http-header-validation",
    "input-required-result-unsupported-methods",
)
LEGACY = ("server-initialize", "ping", "tools-list", "dns-rebinding-protection")
SCENARIOS = [
    *(("2026-07-28", name) for name in MODERN),
    *(("2025-11-25", name) for name in LEGACY),
]
"""Those that need none of the suite's own tools."""
NOT_TESTABLE = "Not testable: server does not list the diagnostic tool"


async def run(
    *arguments: str, visited: Callable[[str], Awaitable[None]] | None = None
) -> tuple[int, str]:
    """Run the suite; where it asks for a visitor with a browser, one comes."""
    command = [str(suite.NODE), str(suite.SUITE), *arguments]
    return await visits.run(command, suite.HOME, visited=visited)


def checks(folder: Path) -> list[dict[str, Any]]:
    """Read what the suite checked."""
    return [one for file in folder.rglob("checks.json") for one in json.loads(file.read_text())]


@pytest.fixture
async def lent(two_keepers: ServedStores) -> AsyncIterator[str]:
    """Serve ann's store at `/mcp` with her token in every request, for the suite can bring none."""
    await two_keepers.live_site.running.service.database.execute(
        "UPDATE organizations SET plan = 'max_20x'"
    )
    header = (b"authorization", f"Bearer {await two_keepers.ann.token()}".encode())
    path = urlsplit(two_keepers.ann.address).path

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == "/mcp":
            headers = [*scope["headers"], header]
            scope = {**scope, "path": path, "raw_path": path.encode(), "headers": headers}
        await two_keepers.live_site.running.app(scope, receive, send)

    port, stop, ready = free_port(), anyio.Event(), anyio.Event()
    async with anyio.create_task_group() as tasks:
        serve = partial(serve_app, ready=ready.set)
        tasks.start_soon(serve, app, "127.0.0.1", port, stop)
        await ready.wait()
        yield f"http://localhost:{port}/mcp"
        stop.set()


@pytest.mark.parametrize(("revision", "scenario"), SCENARIOS)
async def test_a_real_store_conforms(
    lent: str, tmp_path: Path, revision: str, scenario: str
) -> None:
    asked = ("--url", lent, "--scenario", scenario, "--spec-version", revision)
    _, answered = await run("server", *asked, "-o", str(tmp_path))
    made = checks(tmp_path)
    assert "SUCCESS" in {one["status"] for one in made}, answered
    failed = [one for one in made if one["status"] == "FAILURE"]
    assert [one for one in failed if NOT_TESTABLE not in one["errorMessage"]] == [], answered


async def test_the_authorization_server_conforms(two_keepers: ServedStores, tmp_path: Path) -> None:
    port = free_port()
    client = await two_keepers.ann.registered(f"http://127.0.0.1:{port}/callback")

    named = (
        "--url",
        two_keepers.url,
        "--client-id",
        client.client_id,
        "--resource",
        two_keepers.ann.address,
    )
    output = ("--port", str(port), "-o", str(tmp_path))
    status, answered = await run("authorization", *named, *output, visited=two_keepers.ann.visit)
    assert status == 0, answered
    assert [one["status"] for one in checks(tmp_path)] == ["SUCCESS"] * 3, answered
