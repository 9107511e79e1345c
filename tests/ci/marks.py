"""Marks tests for CI: `gate` for slow tests that every landing passes, `served`, and `exact`."""

import re
from typing import Final

import pytest

GATE: Final = (
    "tests/campaigns/money/test_money.py",
    "tests/journeys/test_kill.py",
    "tests/journeys/test_restore.py",
    "tests/journeys/test_rolling.py::test_a_rolling_restart",
    "tests/journeys/test_walk.py",
    "tests/pages/test_axe.py",
    "tests/pages/test_roles.py",
)
"""What the ids of these slow tests begin with."""
EXACT_WORDS: Final = frozenset(
    (
        # Money
        "affiliate affiliates amounts billing checkout contracts credit credits golden idempotency ledger money "
        "organization paid paying payment payments payout payouts plans prices purchases recurring refunds "
        "revenue sale sales sums "
        # Tenancy
        "attacks disclosure forgeries hostile organizations partitioned tenants visibility "
        # Credentials
        "accounts credentials grant invitations key keys oauth origins passwords rotation secrets security "
        "sessions token tokens "
        # Signatures
        "badge badges deals evidence proof replay sealed sealing signatures verification "
        # A campaign that finds something by a seed and a schedule has found it.
        "campaigns canary"
    ).split()  # noqa: SIM905 - a line for each subject
)
"""A test is exact when its path has one of these words; elsewhere a file says `pytestmark = pytest.mark.exact`."""
BROWSER_TESTS: Final = "tests/pages/"
"""Each of these shows in a browser what has a test of its own without one."""


def is_exact(path: str) -> bool:
    """Return whether a failure of a file's tests is never put down to chance."""
    return not path.startswith(BROWSER_TESTS) and not EXACT_WORDS.isdisjoint(
        re.findall(r"[a-z]+", path)
    )


def mark_for_ci(item: pytest.Item) -> None:
    """Mark a test of which it is known whether it is slow."""
    is_slow = item.get_closest_marker("slow") is not None
    if is_slow and item.nodeid.startswith(GATE):
        item.add_marker("gate")
    if is_slow or "servers" in getattr(item, "fixturenames", ()):
        item.add_marker("served")
    if is_exact(item.nodeid.partition("::")[0]):
        item.add_marker("exact")
