"""A client of status pages that nobody here wrote reads ours, on the main address and on the sub-address' form."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx
import pytest

from tests.http.people import made_operator, settings_of
from tests.journeys.conftest import CRON_SECRET, free_port
from tests.journeys.strangers import person
from tests.pages.conftest import served

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(
    not (HERE / "node_modules" / "statuspage.io").is_dir(),
    reason="no client here: `make conformance` installs it",
)


def read(address: str) -> Any:
    ended = subprocess.run(
        ["node", HERE / "status_client.js", address],  # noqa: S607 - as npm has it
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


async def test_a_status_client_that_others_use_reads_every_document(
    database_url: str, redis_url: str
) -> None:
    port = free_port()
    settings = settings_of(
        database_url=database_url,
        redis_url=redis_url,
        cron_secret=CRON_SECRET,
        base_url=f"http://127.0.0.1:{port}",
    )
    async with (
        served(settings, port) as site,
        httpx.AsyncClient(base_url=site.url, headers={"Origin": site.url}, trust_env=False) as web,
    ):
        await made_operator(site.running.service.database, await person(web, "op@example.com"))
        incident = {
            "component": "billing",
            "title": "Invoices are late",
            "impact": "major",
            "body": "We look for the cause.",
            "reason": "Seen by hand.",
        }
        assert (await web.post("/api/admin/incidents", json=incident)).status_code == 201
        found = await anyio.to_thread.run_sync(read, f"{site.url}/status")
    assert found["status"]["status"]["indicator"] == "major"
    states = {one["name"]: one["status"] for one in found["components"]["components"]}
    assert states["Billing"] == "partial_outage"
    assert set(states.values()) == {"operational", "partial_outage"}
    (told,) = found["unresolved"]["incidents"]
    assert (told["name"], told["status"]) == ("Invoices are late", "investigating")
    assert found["incidents"]["incidents"] == found["summary"]["incidents"] == [told]
    for name in ("maintenances", "active", "upcoming"):
        assert found[name]["scheduled_maintenances"] == []
