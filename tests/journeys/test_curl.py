"""Somebody with a shell calls every route as `docs/api.md` says."""

import json
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests import curl
from tests.http.people import PASSWORD, settings_of
from tests.journeys.conftest import free_port
from tests.pages.conftest import ServedSite, served
from tolsey.http.layout import live as following
from tolsey.storage.people import administrators

TELL = "curl() { printf '%s\\0' \"$@\"; printf '\\n\\0'; }\n"
"""A shell's own idea of what it calls curl with."""
SHELLS = ("sh", "bash", "zsh")
MISREAD = {"invalid_request", "malformed_json", "unsupported_media_type", "foreign_origin"}
NOWHERE = "This page or endpoint doesn't exist. Check the address."
SUCCEEDING = {
    "get /api/stores",
    "get /api/stores/{store_id}/export",
    "get /api/credits",
    "get /api/admin/actors/{kind}/{id}",
    "get /api/public/listings/{slug}/verification",
    "get /metrics",
    "patch /api/sell/listings/{listing_id}",
    "post /api/admin/credits/adjust",
    "post /api/admin/crons/{name}/run",
    "post /api/auth/logout",
    "post /api/auth/password",
    "post /api/cron/{name}",
    "post /oauth/register",
    "post /api/organizations",
    "post /api/sell/listings/{listing_id}/publish",
    "put /api/organizations/{organization_id}/rules",
    "delete /api/stores/{store_id}",
}
"""What needs no one else's service; of the others it is enough that they were understood."""
VARIABLE = re.compile(r"\$([A-Z_]+)")


def scripted() -> list[str]:
    return [text for *_, text in curl.examples()]


def told(shell: str, script: str, variables: Mapping[str, str]) -> list[list[str]]:
    """Let a shell say what each example calls curl with."""
    done = subprocess.run(
        [shell, "-c", TELL + script],
        env=dict(variables),
        capture_output=True,
        text=True,
        check=True,
    )
    calls = [one.split("\0")[:-1] for one in done.stdout.split("\n\0")[:-1]]
    assert done.stderr == ""
    return calls


def test_the_page_has_an_example_of_every_route() -> None:
    wanted = curl.PAGE.read_text().partition(curl.MARK)[0] + curl.written()
    assert curl.PAGE.read_text() == wanted, "python -m tests.curl --write"


@pytest.mark.parametrize("shell", [one for one in SHELLS if shutil.which(one)])
def test_every_shell_reads_the_examples_alike(shell: str) -> None:
    script = "\n".join(scripted())
    variables = {name: f'a value\'s "{name}"' for name in VARIABLE.findall(script)}
    calls = told(shell, script, variables)

    assert len(calls) == len(scripted())
    assert calls == told("sh", script, variables)


@pytest.fixture
async def live_site(database_url: str, redis_url: str) -> AsyncIterator[ServedSite]:
    port = free_port()
    settings = settings_of(
        base_url=f"http://127.0.0.1:{port}",
        database_url=database_url,
        redis_url=redis_url,
        cron_secret="c" * 40,
        metrics_token="m" * 40,
        payments_api_base="http://127.0.0.1:9",
        commerce_url_template="http://127.0.0.1:9/{shop}",
        storefront_url="http://127.0.0.1:9",
    )
    async with served(settings, port) as opened:
        yield opened


class Shell:
    """A folder with a shell in it, in which examples are typed."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder = folder
        self.known = {
            "TOLSEY": address,
            "CRON_SECRET": "c" * 40,
            "METRICS_TOKEN": "m" * 40,
            "PATH": "/usr/bin:/bin",
        }

    async def type(self, example: str) -> tuple[int, Any]:
        """Run an example; give the status and the answer."""
        line = example.replace("curl ", "curl -sS --max-time 60 -w '\\n%{http_code}' ", 1)
        done = await anyio.run_process(["sh", "-c", line], cwd=self.folder, env=self.known)
        body, _, status = done.stdout.decode().rpartition("\n")
        return int(status), json.loads(body) if body.startswith("{") else body


def named(found: list[tuple[str, str, str]], method: str, path: str) -> str:
    (text,) = [text for where, how, text in found if (where, how) == (path, method)]
    return text


def rank(path: str, method: str) -> tuple[bool, bool, bool, bool]:
    """Publish before anyone looks; what takes something away comes last."""
    ends = path.endswith(("pause", "resume", "suspend", "withdraw", "reject", "/password"))
    return (
        path in {"/api/auth/logout", "/api/account"},
        method == "delete",
        ends,
        not path.endswith("publish"),
    )


@pytest.mark.slow
async def test_each_example_is_a_request_that_the_service_takes(
    live_site: ServedSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "LOOK_SECONDS", 0)
    shell, found = Shell(tmp_path, live_site.url), list(curl.examples())
    status, made = await shell.type(named(found, "post", "/api/auth/signup"))
    assert status == 201, made
    shell.known |= {"ORGANIZATION_ID": made["organization"]["id"], "USER_ID": made["user"]["id"]}
    database = live_site.running.service.database
    await administrators.create_administrator(database, made["user"]["email"], PASSWORD)
    assert (await shell.type(named(found, "post", "/api/auth/login")))[0] == 200
    for path, variable in (("/api/stores", "STORE_ID"), ("/api/sell/listings", "LISTING_ID")):
        status, made = await shell.type(named(found, "post", path))
        assert status == 201, made
        shell.known[variable] = made["id"]
    shell.known["SLUG"] = made["slug"]
    written = "\n".join(text for *_, text in found)
    for name in set(VARIABLE.findall(written)) - shell.known.keys():
        shell.known[name] = "some_1"

    said = dict[str, tuple[int, Any]]()
    for path, method, text in sorted(found, key=lambda one: rank(one[0], one[1])):
        if path not in {"/api/auth/signup", "/api/auth/login"}:
            said[f"{method} {path}"] = await shell.type(text)
    well = {name for name, (status, _) in said.items() if status < 400}
    refused = {name: body for name, (_, body) in said.items() if isinstance(body, dict)}

    assert well >= SUCCEEDING
    assert [name for name, (status, _) in said.items() if status == 500] == []
    assert {name: one for name, one in refused.items() if one.get("code") in MISREAD} == {}
    nowhere = {name for name, one in refused.items() if one.get("detail") == NOWHERE}
    assert nowhere == {"post /api/internal/scans"}  # to whoever is not the queue
