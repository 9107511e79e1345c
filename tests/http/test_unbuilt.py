"""What is named and not built, and what stands at addresses of its own."""

import re
import subprocess
from pathlib import Path

import httpx
import pytest

import tolsey
from tests.http.people import settings_of
from tolsey.service import running


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/admin/actors/store/store_1/at"),
    ],
)
async def test_what_the_contract_names_and_nobody_built_says_so(
    database_url: str, redis_url: str, method: str, path: str
) -> None:
    settings = settings_of(
        database_url=database_url,
        redis_url=redis_url,
        base_url="https://tolsey.example",
    )
    async with running(settings, timers=False) as live:
        transport = httpx.ASGITransport(live.app)
        async with httpx.AsyncClient(transport=transport, base_url=settings.base_url) as client:
            unbuilt = await client.request(method, path)
            unknown = await client.get("/api/nowhere")

    assert (unbuilt.status_code, unbuilt.json()["code"]) == (501, "not_built")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")


def test_the_version_names_the_build_where_it_was_written_down(tmp_path: Path) -> None:
    written = tmp_path / "build.txt"
    written.write_text("v0.1.0-12-gabcdef0\n")
    assert tolsey.version_of(written) == f"{tolsey.VERSION}+v0.1.0-12-gabcdef0"
    assert tolsey.version_of(tmp_path / "nothing") == tolsey.VERSION


def test_each_way_to_install_writes_the_name_of_the_build_down() -> None:
    root = Path(__file__).parents[2]
    steps = subprocess.run(
        ["make", "-n", "setup"],  # noqa: S607 - as one types it
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "> tolsey/build.txt" in steps.stdout
    assert re.search(r"args: { BUILD: ", (root / "deploy" / "compose.yaml").read_text())
    assert re.search(r"^ARG BUILD=", (root / "deploy" / "Dockerfile").read_text(), re.MULTILINE)
