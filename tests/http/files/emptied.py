"""Waits for a folder's store to take away what it had begun: it does so in a thread of its own."""

from pathlib import Path

import anyio


async def is_emptied(folder: Path) -> None:
    """Return when no file is left under a folder; fails when one stays."""
    with anyio.fail_after(5):
        while [one for one in folder.rglob("*") if one.is_file()]:
            await anyio.sleep(0.01)
