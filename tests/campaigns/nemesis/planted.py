"""Bugs on purpose in a whole service: the campaign has to find each, or it finds little."""

import importlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from tests.campaigns.cluster.faults import Fault
from tests.campaigns.cluster.planted import Bug, commits_are_not_fenced
from tolsey.runtime.shards import leases, ownership
from tolsey.storage.tables import TABLES


def nothing_is_claimed() -> Iterator[None]:
    """What is delivered again is taken again: nobody looks at the unique rows, and none is refused."""
    # The command imports the service when it runs: until then no table has said that it claims anything.
    importlib.import_module("tolsey.service")
    blind = {
        record: replace(table, claim=False, conflict="ON CONFLICT DO NOTHING")
        for record, table in TABLES.items()
        if table.claim
    }
    assert blind
    with patch.dict(TABLES, blind):
        yield


def leases_are_twenty_times_too_long() -> Iterator[None]:
    """A process goes on answering, and looks at nothing, long after the others hold it dead.

    It would learn from the map, which it can read without Redis, that its slots are others' by now.
    """
    with (
        patch.object(ownership, "HELD", 20 * leases.HELD),
        patch.object(ownership, "MAP_SHARE", 20 * ownership.MAP_SHARE),
    ):
        yield


def any_error_means_dead() -> Iterator[None]:
    """What keeps a process from looking at another is taken for the other's death."""

    def gone(process: str) -> bool:  # it takes the place of the code of `leases.is_gone`
        try:
            Path(f"/proc/{process.split('-')[1]}/stat").read_text()
        except OSError:
            return True
        return False

    with patch.object(leases.is_gone, "__code__", gone.__code__):
        yield


PLANTED_SECONDS = 26.0
LATE_COMMITS = tuple(Fault(1.0 + 6 * n, "late_commit", 1) for n in range(3))
"""What a service sent last arrives when others have just taken its slots."""
LONELY = tuple(Fault(1.0 + 12 * n, "cut_redis", 1 + n, 11.0) for n in range(2))
"""Who is cut from Redis still reads who asks for what, and has what others change meanwhile in memory."""
STARVED = tuple(Fault(1.0 + 6 * n, "descriptors", 1 + n % 2, 4.0) for n in range(3))

BUGS = {
    bug.name: bug
    for bug in (
        Bug("commits_are_not_fenced", commits_are_not_fenced, LATE_COMMITS, ("epoch_order",)),
        Bug("nothing_is_claimed", nothing_is_claimed, (), ("double_delivery",)),
        Bug(
            "leases_are_twenty_times_too_long",
            leases_are_twenty_times_too_long,
            LONELY,
            ("stale_read",),
        ),
        Bug("any_error_means_dead", any_error_means_dead, STARVED, ("robbed",)),
    )
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Have a bug in this process; none without a name."""
    with ExitStack() as stack:
        if name:
            stack.enter_context(contextmanager(BUGS[name].plant)())
        yield
