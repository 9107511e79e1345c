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
        ("POST", "/api/wizard/store/provision"),
        ("GET", "/api/admin/disputes"),
        ("GET", "/api/marketplace/deals/deal_1/files/file_1"),
        ("GET", "/status.json"),
        ("POST", "/api/webhooks/mail"),
        ("GET", "/api/preview/themes/1"),
    ],
)
async def test_what_the_contract_names_and_nobody_built_says_so(
    database_url: str, redis_url: str, method: str, path: str
) -> None:
    settings = settings_of(
        database_url=database_url,
        redis_url=redis_url,
        base_url="https://tolsey.example",
        next_public_live_subdomains="status,mcp",
    )
    async with running(settings, timers=False) as live:
        transport = httpx.ASGITransport(live.app)
        async with httpx.AsyncClient(transport=transport, base_url=settings.base_url) as client:
            unbuilt = await client.request(method, path)
            unknown = await client.get("/api/nowhere")
            elsewhere = {
                host: await client.get(f"https://{host}.tolsey.example/api/health")
                for host in ("status", "docs", "mcp")
            }
            # RFC 9110 section 4.2.3: the default port may be said, RFC 3986 section 3.2.2: so may the last dot.
            spelt = [
                await client.get("/api/health", headers={"Host": f"Status.tolsey.example{ending}"})
                for ending in (":443", ":", ".", ".:443")
            ]

    assert (unbuilt.status_code, unbuilt.json()["code"]) == (501, "not_built")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    # A sub-address that should be live says that it is not there yet; no other serves the whole site.
    assert {host: answer.status_code for host, answer in elsewhere.items()} == {
        "status": 501,
        "docs": 404,
        "mcp": 404,
    }
    assert elsewhere["status"].json()["code"] == "not_built"
    assert {answer.status_code for answer in spelt} == {501}


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
