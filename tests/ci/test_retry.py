"""`pytest --retry`: a failed test runs once more, alone, in a fresh process."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

PROJECT = Path(__file__).parents[2]
INI = "[pytest]\nmarkers = served\n  exact\naddopts = -p tests.ci.retry\n"
# Fails in the process that ran the first test, and passes alone.
ONCE = """
import os, pathlib, pytest
def fail_once(name):
    ran = pathlib.Path(name)
    if not ran.exists():
        ran.write_text("")
        raise AssertionError("by chance")
"""
PASSES = "def test_passes():\n    pass\n"
CHANCE = "@pytest.mark.served\ndef test_chance():\n    fail_once('chance')\n"
EXACT = "@pytest.mark.served\n@pytest.mark.exact\ndef test_exact():\n    fail_once('exact')\n"
NO_SERVER = "def test_no_server():\n    fail_once('no_server')\n"
RED = "@pytest.mark.served\ndef test_red():\n    assert 1 == 2\n"
SKIPS = """
@pytest.mark.served
def test_skips():
    if pathlib.Path('skips').exists():
        pytest.skip('now')
    fail_once('skips')
"""
TEARDOWN = """
@pytest.fixture
def broken():
    yield
    fail_once('teardown')
@pytest.mark.served
def test_teardown(broken):
    pass
"""


class Run(NamedTuple):
    status: int
    output: str
    results: dict[str, Any]


def run_pytest(folder: Path, tests: str, *options: str, listed: str = "landing = 7\n") -> Run:
    (folder / "test_it.py").write_text(ONCE + tests)
    (folder / "pytest.ini").write_text(INI)
    (folder / "tests").mkdir()
    (folder / "tests" / "quarantine.toml").write_text(listed)
    results = folder / "results.jsonl"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder,
        env={
            "PYTHONPATH": str(PROJECT),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "TEST_RESULTS": str(results),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    (line,) = results.read_text().splitlines()
    return Run(done.returncode, done.stdout + done.stderr, json.loads(line))


def test_what_passes_alone_and_has_a_server_is_quarantined(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, PASSES + CHANCE + TEARDOWN, "--retry")
    assert run.status == 0, run.output
    assert run.results == {
        "passed": 2,
        "red": {},
        "quarantined": ["test_it.py::test_chance", "test_it.py::test_teardown"],
    }
    assert "QUARANTINED test_it.py::test_chance" in run.output
    assert '[[test]]\nid = "test_it.py::test_chance"\nadded = 8\n' in run.output
    assert "AssertionError: by chance" in run.output
    assert "2 passed, 2 quarantined in" in run.output.splitlines()[-1]


def test_every_other_failure_is_red(tmp_path: Path) -> None:
    listed = 'landing = 7\n[[test]]\nid = "test_it.py::test_chance"\nadded = 6\ncause = "c"\n'
    tests = PASSES + CHANCE + EXACT + NO_SERVER + RED + SKIPS
    run = run_pytest(tmp_path, tests, "--retry", "-p", "tests.forks", "--forks", "2", listed=listed)
    assert run.status == 1
    assert run.results == {
        "passed": 1,
        "red": {
            "test_it.py::test_exact": "passed when it ran alone, but is marked exact",
            "test_it.py::test_no_server": "passed when it ran alone, but needs no server",
            "test_it.py::test_red": "failed again when it ran alone",
            "test_it.py::test_skips": "failed again when it ran alone",
        },
        "quarantined": ["test_it.py::test_chance"],
    }
    assert "[[test]]" not in run.output, "a listed test needs no second entry"
    assert "test_it.py::test_red, alone:" in run.output
    assert "4 failed, 1 passed, 1 quarantined in" in run.output.splitlines()[-1]


def test_many_failures_are_not_run_again(tmp_path: Path) -> None:
    many = "@pytest.mark.served\n@pytest.mark.parametrize('n', range(11))\n"
    many += "def test_many(n):\n    fail_once(f'many-{n}')\n"
    run = run_pytest(tmp_path, many, "--retry")
    assert run.status == 1
    assert set(run.results["red"].values()) == {"failed"}
    assert len(run.results["red"]) == 11


def test_a_process_that_ended_is_red_whatever_its_tests_do_alone(tmp_path: Path) -> None:
    death = "def test_death():\n    os._exit(3)\n"
    run = run_pytest(tmp_path, CHANCE + death, "--retry", "-p", "tests.forks", "--forks", "1")
    assert run.status == 1
    assert "a process ended with 3" in run.results["red"]["pytest"]


def test_what_cannot_be_collected_is_red(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, "import nowhere_to_be_found\n", "--retry")
    assert run.status == 2
    assert list(run.results["red"]) == ["test_it.py"]


def test_without_the_option_a_failure_is_red(tmp_path: Path) -> None:
    inner = "def test_that_runs_pytest():\n    assert 'TEST_RESULTS' not in os.environ\n"
    run = run_pytest(tmp_path, CHANCE + inner)
    assert run.status == 1
    assert run.results == {
        "passed": 1,
        "red": {"test_it.py::test_chance": "failed"},
        "quarantined": [],
    }
