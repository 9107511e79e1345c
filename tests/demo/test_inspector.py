"""What people are told to type is what was tried."""

import json
from pathlib import Path

from tolsey.demo.run import INSPECT

ROOT = Path(__file__).parents[2]


def test_people_are_told_the_inspector_that_was_tried() -> None:
    tried = json.loads((ROOT / "tests/mcp/conformance/package.json").read_text())
    version = tried["dependencies"]["@modelcontextprotocol/inspector"]
    assert INSPECT.startswith(f"npx @modelcontextprotocol/inspector@{version} --cli")
    assert f"{INSPECT} --server-url http" in (ROOT / "docs/agents.md").read_text()
