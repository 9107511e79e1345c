"""A newcomer runs one command and sees the main job."""

import os
import subprocess
import sys
from pathlib import Path

from tests.journeys.conftest import free_port


def test_the_sandbox_shows_the_main_job_on_its_own(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "tolsey", "sandbox", "--once", "--orders", "200"),
            *("--port", str(free_port()), "--platform-port", str(free_port())),
            *("--data-dir", str(tmp_path / "sandbox")),
        ],
        env={name: value for name, value in os.environ.items() if not name.endswith("_URL")},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    for said in ("demo.myshopify.com is active", "verified", "were applied once each", "badge.svg"):
        assert said in ended.stdout
