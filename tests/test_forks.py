"""`--forks`: every test runs once, what fails is told, and a process that ends is no success."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # it tests how the suite itself runs

PROJECT = Path(__file__).parent.parent
TESTS = """
import os, pytest
@pytest.mark.parametrize("number", range(40))
def test_number(number):
    with open("ran", "a") as ran:
        ran.write(f"{number} {os.getpid()}\\n")
    assert number != 7
"""
SHARED = """
import os, time, pytest
@pytest.mark.parametrize("number", range(8))
def test_number(number):
    time.sleep(0.05)
    with open("ran", "a") as ran:
        ran.write(f"{__name__} {os.getpid()}\\n")
"""
DEATH = "import os\ndef test_death():\n    os._exit(3)\ndef test_other():\n    pass\n"


def run_in_forks(folder: Path, *texts: str) -> "subprocess.CompletedProcess[str]":
    for number, text in enumerate(texts):
        (folder / f"test_{number}.py").write_text(text)
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


def test_who_takes_over_takes_whole_files_while_there_are_any(tmp_path: Path) -> None:
    assert run_in_forks(tmp_path, TESTS.replace("7", "41"), *[SHARED] * 4).returncode == 0
    ran = [line.split() for line in (tmp_path / "ran").read_text().splitlines()]
    processes = {name: {of for what, of in ran if what == name} for name, _ in ran}
    # 72 tests are shared among three: the last share begins within the second of the files that wait.
    assert sum(len(of) == 1 for name, of in processes.items() if not name.isdigit()) >= 2


def test_a_process_that_ends_fails_the_run_and_names_its_test(tmp_path: Path) -> None:
    done = run_in_forks(tmp_path, DEATH)
    assert done.returncode == 1
    assert "a process ended with 3 in ['test_0.py::test_death']" in done.stdout
