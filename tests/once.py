"""What every test would make anew, and what is made once here: each takes processor time, and thousands of tests run."""

import gc
from collections.abc import Iterable, Iterator, Sequence
from copy import copy as shallow
from functools import cache
from types import SimpleNamespace
from typing import Any, Final

import asyncpg
import httpx
import pytest
import redis.utils
import structlog
from quart import Blueprint, Quart
from werkzeug.routing import Rule

from tests import described
from tolsey.http import app
from tolsey.http.layout import templates
from tolsey.http.webhooks.commerce import CommerceEvents
from tolsey.storage.people import passwords

FIRST_OWN_TYPE: Final = 16384
"""PostgreSQL numbers the types that it brings below this, in every database alike."""


gc.disable()  # what is imported and collected stays: to search it for garbage takes half as long as to make it


def pytest_collection_finish() -> None:
    """Leave modules and tests out of every search for garbage, and search seldom."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Make what every process would make by itself before they part: that takes each of them 3 s."""
    if session.config.option.forks and not session.config.option.collectonly:
        templates.compile_all()
        described.description()


@pytest.fixture(scope="session")
def given_once() -> Iterator[pytest.MonkeyPatch]:
    """Put something in place for the whole session."""
    with pytest.MonkeyPatch.context() as given:
        yield given


@pytest.fixture(scope="session", autouse=True)
def _ready_hashes(given_once: pytest.MonkeyPatch) -> None:
    """Derive and verify each password once: that takes 24 ms, by design."""
    given_once.setattr(passwords, "_derive", cache(passwords._derive))
    given_once.setattr(passwords, "_verify", cache(passwords._verify))


@pytest.fixture(scope="session", autouse=True)
def _routes_put_together_once(given_once: pytest.MonkeyPatch) -> None:
    """Put each set of routes together once, for all ports of this machine: that takes 60 ms."""
    kept = cache(app.routed)

    def copied(blueprints: Sequence[Blueprint], base_url: str) -> Quart:
        is_here = base_url.startswith("http://127.0.0.1:")
        made = shallow(kept(blueprints, described.BASE_URL if is_here else base_url))
        made.config = shallow(made.config)
        made.config["BASE_URL"] = base_url
        made.extensions = dict(made.extensions)  # among them the service that the routes act for
        return made

    given_once.setattr(app, "routed", copied)


@pytest.fixture(scope="session", autouse=True)
def _addresses_compiled_once(given_once: pytest.MonkeyPatch) -> None:
    """Compile what writes the address of a route once: that takes 0.4 ms, and stand-ins have hundreds of routes."""
    compiled = Rule._compile_builder
    kept: dict[tuple[object, ...], Any] = {}

    def once(rule: Rule, append_unknown: bool = True) -> Any:
        if rule.defaults:
            return compiled(rule, append_unknown)
        which = (rule.rule, *rule._trace, append_unknown)
        if which not in kept:
            kept[which] = compiled(rule, append_unknown)
        return kept[which]

    given_once.setattr(Rule, "_compile_builder", once)


@pytest.fixture(scope="session", autouse=True)
def _certificates_read_once(given_once: pytest.MonkeyPatch) -> None:
    """Read the authorities that a test's own client trusts once: that takes 8 ms, and they speak plain HTTP."""
    once = cache(httpx.create_ssl_context)
    given_once.setattr("httpx._transports.default.create_ssl_context", once)


@pytest.fixture(scope="session", autouse=True)
def _patient_clients(given_once: pytest.MonkeyPatch) -> None:
    """Let a test's own client wait for an answer for as long as a busy machine takes, not for 5 s."""
    for what in ("connect", "read", "write", "pool"):
        given_once.setattr(httpx._config.DEFAULT_TIMEOUT_CONFIG, what, 120.0)


@pytest.fixture(scope="session", autouse=True)
def _patient_platform(given_once: pytest.MonkeyPatch) -> None:
    """Let a delivery be kept, or not, for as long as a busy machine takes; who tests its time gives it."""
    defaults = CommerceEvents.__init__.__kwdefaults__
    assert defaults is not None
    given_once.setitem(defaults, "delivery_seconds", 120.0)


@pytest.fixture(scope="session", autouse=True)
def _driver_named_once(given_once: pytest.MonkeyPatch) -> None:
    """Look up the name of the driver of Redis once: each connection would read it from disk."""
    given_once.setattr("redis.utils.get_lib_version", cache(redis.utils.get_lib_version))


@pytest.fixture(scope="session", autouse=True)
def _types_looked_up_once(given_once: pytest.MonkeyPatch) -> None:
    """Look up each type of PostgreSQL's own once: each connection asks, and PostgreSQL takes 12 ms to answer."""
    look_up = asyncpg.Connection._introspect_types  # type: ignore[attr-defined]
    known: dict[frozenset[int], Sequence[Any]] = {}

    async def looked_up(
        connection: Any, oids: Iterable[int], seconds: float | None
    ) -> tuple[Sequence[Any], Any]:
        asked = frozenset(oids)
        if asked not in known:
            found, statement = await look_up(connection, asked, seconds)
            if max(asked) >= FIRST_OWN_TYPE:
                return found, statement
            known[asked] = found
        return known[asked], SimpleNamespace(name="asked before")

    given_once.setattr(asyncpg.Connection, "_introspect_types", looked_up)


@pytest.fixture(scope="session", autouse=True)
def _plain_traces() -> None:
    """Print a failure as Python does: to paint one takes 200 ms, and every test of a fault has some."""
    for one in structlog.get_config()["processors"]:
        if isinstance(one, structlog.dev.ConsoleRenderer):
            one.exception_formatter = structlog.dev.plain_traceback
