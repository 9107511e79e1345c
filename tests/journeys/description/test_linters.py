"""What the service says of itself is without error in the two linters that people really run on it."""

import os
import subprocess
from pathlib import Path

import httpx
import pytest

HERE = Path(__file__).parent
BINARIES = HERE / "node_modules" / ".bin"
LINTERS = {
    "redocly": ("lint", "--format=stylish"),
    "spectral": ("lint", "--fail-severity=error", "--ruleset", str(HERE / "spectral.yaml")),
}
pytestmark = pytest.mark.skipif(
    not BINARIES.is_dir(), reason="no linters here: `make conformance` installs them"
)


@pytest.mark.parametrize("linter", LINTERS)
async def test_the_description_is_without_error(
    browser: httpx.AsyncClient, tmp_path: Path, linter: str
) -> None:
    described = tmp_path / "openapi.json"
    described.write_text((await browser.get("/openapi.json")).text)
    command, *options = LINTERS[linter]
    found = subprocess.run(
        [BINARIES / linter, command, described, *options],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "REDOCLY_TELEMETRY": "off"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
