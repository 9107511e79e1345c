"""The build's name, which is written down where it is installed."""

import re
import subprocess
from pathlib import Path

import tolsey


def test_the_version_names_the_build_where_it_was_written_down(tmp_path: Path) -> None:
    written = tmp_path / "build.txt"
    written.write_text("v0.1.0-12-gabcdef0\n")
    assert tolsey.version_of(written) == f"{tolsey.VERSION}+v0.1.0-12-gabcdef0"
    assert tolsey.version_of(tmp_path / "nothing") == tolsey.VERSION


def test_each_way_to_install_writes_the_name_of_the_build_down() -> None:
    root = Path(__file__).parents[2]
    steps = subprocess.run(
        ["make", "-n", "setup"],  # noqa: S607 - as one types it
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "> tolsey/build.txt" in steps.stdout
    assert re.search(r"args: { BUILD: ", (root / "deploy" / "compose.yaml").read_text())
    assert re.search(r"^ARG BUILD=", (root / "deploy" / "Dockerfile").read_text(), re.MULTILINE)
