"""axe-core, which tells what of a page somebody who cannot see, point or tell colours apart does not get."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.pages.chromium import Page

HERE: Final = Path(__file__).parent / "axe"
INSTALL: Final = ("ci", "--no-audit", "--no-fund", "--silent", "--ignore-scripts")
RUN: Final = """
axe.run(document, {resultTypes: ['violations']}).then(found => found.violations.map(
    one => `${one.id}: ${one.nodes.map(node => node.target.join(' ')).join(', ')}`
))
"""
THEMES: Final = ("light", "dark")


def axe_source(folder: Path) -> str | None:
    """Install what the lock names and read it; None where there is no npm, or no registry."""
    npm = shutil.which("npm")
    if npm is None:
        return None
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, folder / name)
    done = subprocess.run(
        [npm, *INSTALL], cwd=folder, capture_output=True, timeout=120, check=False
    )
    if done.returncode:
        return None
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


async def violations(page: Page, source: str) -> Sequence[str]:
    """Say what axe finds wrong with a page as it is shown, in light and in dark, with everything unfolded."""
    await page.read("document.querySelectorAll('details').forEach(one => { one.open = true })")
    await page.read(f"{source}; 0")
    found = list[str]()
    for theme in THEMES:
        media = [{"name": "prefers-color-scheme", "value": theme}]
        await page.call("Emulation.setEmulatedMedia", features=media)
        found += [f"{theme}: {one}" for one in await page.read(RUN)]
    await page.call("Emulation.setEmulatedMedia", features=[])
    return found
