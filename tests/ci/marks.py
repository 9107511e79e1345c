"""Marks tests for CI: `gate` for slow tests that every landing passes, `served`, and `exact`."""

import re
from typing import Final

import pytest

GATE: Final = {
    "tests/campaigns/money/test_money.py": "",
    "tests/journeys/test_kill.py": "",
    "tests/journeys/test_restore.py": "",
    "tests/journeys/test_rolling.py": "[haproxy]",
    "tests/journeys/test_walk.py": "",
    "tests/pages/test_axe.py": "[('de', 360)]",
    "tests/pages/test_roles.py": "[keyboard, narrow, script, German]",
}
"""The slow tests that every landing passes: their files, and what their ids contain. Together they take some 270
seconds of processor time."""
EXACT_WORDS: Final = re.compile(
    r"""(?<![a-z])(?:
    # Money
    affiliates?|amounts|billing|checkout|contracts|credits?|golden|idempotency|ledger|money|organization
    |paid|paying|payments?|payouts?|plans|prices|purchases|recurring|refunds|revenue|sales?|sums
    # Tenancy
    |attacks|disclosure|forgeries|hostile|organizations|partitioned|tenants|visibility
    # Credentials
    |accounts|credentials|grant|invitations|keys?|oauth|origins|passwords|rotation|secrets|security|sessions|tokens?
    # Signatures
    |badges?|deals|evidence|proof|replay|sealed|sealing|signatures|verification
    # A campaign that finds something by its seed has found it.
    |campaigns|canary
    )(?![a-z])""",
    re.VERBOSE,
)
"""A test is exact when its path has one of these words; elsewhere a file says `pytestmark = pytest.mark.exact`."""
BROWSER_TESTS: Final = "tests/pages/"
"""Each of these shows in a browser what has a test of its own without one."""


def is_exact(path: str) -> bool:
    """Return whether a failure of a file's tests is never put down to chance."""
    return not path.startswith(BROWSER_TESTS) and EXACT_WORDS.search(path) is not None


def mark_for_ci(item: pytest.Item) -> None:
    """Mark a test of which it is known whether it is slow."""
    path = item.nodeid.partition("::")[0]
    if path in GATE and GATE[path] in item.nodeid:
        item.add_marker("gate")
    is_slow = item.get_closest_marker("slow") is not None
    if is_slow or "servers" in getattr(item, "fixturenames", ()):
        item.add_marker("served")
    if is_exact(path):
        item.add_marker("exact")
