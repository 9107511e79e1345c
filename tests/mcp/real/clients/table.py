"""The table of clients in docs/agents.md, out of what the last run of each found.

usage: python -m tests.mcp.real.clients.table [--write]
"""

import re
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from tests.mcp.conformance import suite
from tests.mcp.real.clients.catalogue import CLIENTS, HOME

DOCS: Final = suite.ROOT / "docs/agents.md"
BEGIN, END = "<!-- clients: begin -->\n", "<!-- clients: end -->"
HEAD: Final = (
    "| client | version | consents | tools seen | called | tried |",
    "|---|---|---|---|---|---|",
)


def keep(name: str, found: Mapping[str, Any], *, consents: int) -> None:
    """Keep what a run of a client found."""
    called = sum(trouble is None for trouble in found["answers"].values())
    seen, day = len(found["tools"]), f"{datetime.now(UTC):%Y-%m-%d}"
    row = f"| {name} | {found['version']} | {consents} | {seen} | {called} | {day} |"
    HOME.mkdir(parents=True, exist_ok=True)
    (HOME / f"{name}.row").write_text(row)


def rows() -> Iterator[str]:
    """Write the table; a client that was never tried here is named as such."""
    yield from HEAD
    for client in CLIENTS:
        kept = HOME / f"{client.name}.row"
        untried = f"| {client.name} | not tried here | | | | |"
        yield kept.read_text() if kept.exists() else untried


def main() -> None:
    """Print the table, or put it into its page."""
    written = "".join(f"{row}\n" for row in rows())
    if "--write" in sys.argv:
        page = DOCS.read_text()
        place = re.compile(f"(?<={re.escape(BEGIN)}).*?(?={re.escape(END)})", re.DOTALL)
        DOCS.write_text(place.sub(lambda _: written, page))
    sys.stdout.write(written)


if __name__ == "__main__":
    main()
