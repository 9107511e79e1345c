"""Which tests are exact, and that what the marks name is there."""

import re

import pytest

from tests.ci.marks import GATE, is_exact
from tests.ci.stages import ROOT


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tests/actors/organization/ledger/test_bonuses.py", True),
        ("tests/http/payments/test_refunds.py", True),
        ("tests/http/test_tenants.py", True),
        ("tests/journeys/test_credentials.py", True),
        ("tests/http/deals/sealing/test_seals.py", True),
        ("tests/http/webhooks/test_signatures.py", True),
        ("tests/campaigns/cluster/test_cluster.py", True),
        ("tests/runtime/test_shard.py", False),
        ("tests/journeys/test_kill.py", False),
        ("tests/pages/test_money.py", False),
    ],
)
def test_a_test_is_exact_by_the_words_of_its_path(path: str, expected: bool) -> None:
    assert is_exact(path) is expected


@pytest.mark.parametrize("path", GATE)
def test_what_the_gate_names_is_there(path: str) -> None:
    words = set(re.findall(r"\w+", (ROOT / path).read_text()))
    assert set(re.findall(r"\w+", GATE[path])) <= words
