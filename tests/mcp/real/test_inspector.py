"""The official Inspector's command line, both eras, with every schema held to its strictest."""

from pathlib import Path

import pytest

from tests.mcp.real.inspector import AUTH_REQUIRED, Inspector
from tests.mcp.real.served_stores import ServedStores

pytestmark = pytest.mark.usefixtures("node")

ERAS = ("modern", "legacy")
LIST = ("--method", "tools/list", "--strict")
SUMMARY = ("--method", "tools/call", "--tool-name", "get_store_summary")


@pytest.fixture
def inspector(tmp_path: Path) -> Inspector:
    return Inspector(tmp_path)


@pytest.mark.parametrize("era", ERAS)
async def test_the_inspector_finds_nothing_wrong_with_the_tools(
    two_keepers: ServedStores, inspector: Inspector, era: str
) -> None:
    bearer = ("--header", f"Authorization: Bearer {await two_keepers.ann.token()}")
    listed = await inspector.run(two_keepers.ann.address, era, *LIST, *bearer)
    assert (listed.status, listed.complained) == (0, "")
    assert "get_store_summary" in {tool["name"] for tool in listed.result["tools"]}

    called = await inspector.run(two_keepers.ann.address, era, *SUMMARY, *bearer)
    assert called.status == 0, called.complained
    assert called.result["structuredContent"]["name"] == "Shop of ann@example.com"

    foreign = await inspector.run(
        two_keepers.eve.address, era, *LIST, *bearer, "--stored-auth-only"
    )
    assert foreign.status == AUTH_REQUIRED, foreign.complained


@pytest.mark.parametrize("era", ERAS)
async def test_the_inspector_is_let_in_once_and_remembers_it(
    two_keepers: ServedStores, inspector: Inspector, era: str
) -> None:
    first = await inspector.run_beside(two_keepers.ann, two_keepers.ann.address, era, *SUMMARY)
    assert first.status == 0, first.said
    assert "Shop of ann@example.com" in first.said

    again = await inspector.run(two_keepers.ann.address, era, *LIST, "--stored-auth-only")
    assert again.status == 0, again.complained
    foreign = await inspector.run(two_keepers.eve.address, era, *LIST, "--stored-auth-only")
    assert foreign.status == AUTH_REQUIRED, foreign.complained
    refused = await inspector.run_beside(two_keepers.ann, two_keepers.eve.address, era, *SUMMARY)
    assert refused.status != 0
    assert "Shop of eve@example.com" not in refused.said
