"""Schemathesis makes requests of what `/openapi.json` says, and holds each answer against it.

It is installed apart (`.venv-fuzz`, by `make campaign`), and skipped where it is not. `FUZZ_SEED` and `FUZZ_CASES` say which
and how many; what it finds it prints with the `curl` that repeats it.
"""

import os
import re
import subprocess
from pathlib import Path

import anyio.to_thread
import httpx
import pytest

from tests.http.people import made_operator, settings_of
from tests.journeys.conftest import CRON_SECRET, free_port
from tests.journeys.strangers import person
from tests.pages.conftest import served

SCHEMATHESIS = Path(__file__).parents[3] / ".venv-fuzz" / "bin" / "st"
SEED = os.environ.get("FUZZ_SEED", "1")
CASES = int(os.environ.get("FUZZ_CASES", "2000"))
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
LEAVING = (
    "/api/auth/(login|logout|signup|sessions|password)",
    "/api/account$",
    "/api/account/restore",
    "/api/admin/actors/.*/(pause|passivate)",
    "/api/admin/shards/.*/move",
)
"""What would end the session, or the service's answers; `tests/http` asks for these."""
OURS_TO_SAY = """
[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", 501, 502, 503, 504]
"""
"""A missing credential, a platform out of reach and what is not built are answers that are described; 500 is none."""
GENERATED = re.compile(r"(\d[\d,]*) generated")


@pytest.mark.skipif(not SCHEMATHESIS.exists(), reason="`make campaign` installs Schemathesis")
@pytest.mark.timeout(3_600)
async def test_no_request_that_can_be_made_of_the_description_is_answered_outside_it(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    port = free_port()
    settings = settings_of(
        database_url=database_url,
        redis_url=redis_url,
        data_dir=tmp_path / "data",
        cron_secret=CRON_SECRET,
        base_url=f"http://127.0.0.1:{port}",
        payments_api_base="http://127.0.0.1:9",  # nobody is there: nothing leaves this machine
        commerce_url_template="http://127.0.0.1:9/{shop}",
        storefront_url="http://127.0.0.1:9",
        dataset_url="http://127.0.0.1:9",
        dns_url="dns://127.0.0.1:9",
    )
    async with served(settings, port) as site:
        origin = {"Origin": site.url}
        async with httpx.AsyncClient(base_url=site.url, headers=origin, trust_env=False) as web:
            operator = await made_operator(
                site.running.service.database, await person(web, "operator@example.com")
            )
            described = (await web.get("/openapi.json")).json()
        session = "; ".join(f"{name}={value}" for name, value in operator.browser.cookies.items())
        methods = ("get", "post", "put", "patch", "delete")
        operations = sum(len(one.keys() & set(methods)) for one in described["paths"].values())
        config = tmp_path / "schemathesis.toml"
        config.write_text(OURS_TO_SAY)
        # Three in four of the cases that are allowed are made: many operations take nothing to vary.
        each = max(1, round(4 * CASES / (3 * operations)))
        command = [
            *(str(SCHEMATHESIS), "--config-file", str(config), "run", f"{site.url}/openapi.json"),
            *("--phases", "examples,fuzzing", "--seed", SEED, "--workers", "4", "--no-color"),
            *("--max-examples", str(each), "--checks", ",".join(CHECKS), "--request-timeout", "60"),
            *("--header", f"Cookie: {session}", "--header", f"Origin: {site.url}"),
            *("--exclude-path-regex", "|".join(LEAVING), "--suppress-health-check", "all"),
        ]
        ended = await anyio.to_thread.run_sync(
            lambda: subprocess.run(
                command, cwd=tmp_path, capture_output=True, text=True, check=False
            )
        )
        signed_in = await operator_is_there(site.url, session)
    assert ended.returncode == 0, ended.stdout[-20_000:] + ended.stderr[-5_000:]
    assert signed_in, "the session ended on the way, so most of this was asked by nobody"
    made = GENERATED.search(ended.stdout)
    assert made is not None
    assert int(made[1].replace(",", "")) >= CASES / 2


async def operator_is_there(url: str, session: str) -> bool:
    async with httpx.AsyncClient(base_url=url, headers={"Cookie": session}, trust_env=False) as web:
        return (await web.get("/api/admin/crons")).status_code == 200
