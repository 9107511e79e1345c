"""`--forks`: every test runs once, what fails is told, and a process that ends is no success."""

import re
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parent.parent
TESTS = """
import os, pytest
@pytest.mark.parametrize("number", range(40))
def test_number(number):
    with open("ran", "a") as ran:
        ran.write(f"{number} {os.getpid()}\\n")
    assert number != 7
"""
DEATH = "import os\ndef test_death():\n    os._exit(3)\ndef test_other():\n    pass\n"


def run_in_forks(folder: Path, text: str) -> "subprocess.CompletedProcess[str]":
    (folder / "test_it.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.forks", "--forks", "3", str(folder)],
        cwd=folder,
        env={"PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_test_runs_once_in_several_processes_and_a_failure_is_told(tmp_path: Path) -> None:
    done = run_in_forks(tmp_path, TESTS)
    ran = [line.split() for line in (tmp_path / "ran").read_text().splitlines()]
    assert sorted(int(number) for number, _ in ran) == list(range(40))
    assert len({process for _, process in ran}) > 1
    assert done.returncode == 1
    assert re.search(r"FAILED .*test_number\[7\] - assert 7 != 7", done.stdout)
    assert "1 failed, 39 passed" in done.stdout


def test_a_process_that_ends_fails_the_run_and_names_its_test(tmp_path: Path) -> None:
    done = run_in_forks(tmp_path, DEATH)
    assert done.returncode == 1
    assert "a process ended with 3 in ['test_it.py::test_death']" in done.stdout
