"""The stages of CI: every one runs, and the end of the output says what failed."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

from tests.ci import landing
from tests.ci.stages import ROOT, Outcome, Stage, conclude, run_command, run_stage, summarize

TESTS = Stage(name="test", limit_seconds=60, commands=[["make", "test"]])
SETUP = Stage(name="set-up", limit_seconds=60, commands=[["make", "setup"]], has_tests=False)


def write_results(*runs: dict[str, object]) -> str:
    return "".join(json.dumps(run) + "\n" for run in runs)


@pytest.mark.parametrize(
    ("stage", "results", "failed", "passed", "red"),
    [
        (SETUP, "", None, 0, {}),
        (SETUP, "", "make setup", 0, {"make setup": "failed, as its output says"}),
        (TESTS, write_results({"passed": 3}, {"passed": 4}), None, 7, {}),
        (TESTS, write_results({"passed": 0}), None, 0, {"test": "no test ran"}),
        (TESTS, "", None, 0, {"test": "no test ran"}),
        (
            TESTS,
            write_results({"red": {"mypy": "failed"}}, {"passed": 3, "red": {"a::b": "failed"}}),
            "make test",
            3,
            {"mypy": "failed", "a::b": "failed"},
        ),
        (
            TESTS,
            write_results({"passed": 3}),
            "make test",
            3,
            {"make test": "failed, as its output says"},
        ),
    ],
)
def test_an_outcome_names_everything_that_failed(
    stage: Stage, results: str, failed: str | None, passed: int, red: dict[str, str]
) -> None:
    outcome = conclude(stage, 2, results, failed)
    assert (outcome.passed, outcome.red) == (passed, red)


def test_the_summary_has_durations_all_failures_and_the_counts() -> None:
    outcomes = [
        Outcome(name="set-up", limit_seconds=60, seconds=59.6, passed=0, red={}),
        Outcome(
            name="check and test",
            limit_seconds=330,
            seconds=331,
            passed=7000,
            red={"mypy": "failed", "tests/test_a.py::test_b": "failed again when it ran alone"},
            quarantined=["tests/test_c.py::test_d"],
        ),
        Outcome(name="gate", limit_seconds=150, seconds=0, passed=0, red={"gate": "no test ran"}),
    ]
    assert summarize(outcomes).splitlines() == [
        "set-up           1:00  of  1:00  green",
        "check and test   5:31  of  5:30  RED, over its limit",
        "gate             0:00  of  2:30  RED",
        "total            6:31",
        "RED check and test: mypy: failed",
        "RED check and test: tests/test_a.py::test_b: failed again when it ran alone",
        "QUARANTINED check and test: tests/test_c.py::test_d",
        "RED gate: gate: no test ran",
        "7000 passed, 3 failed",
    ]


def test_a_stage_ends_at_the_command_that_fails(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    write = f"open({str(ran)!r}, 'a').write('x')"
    commands = [[sys.executable, "-c", f"{write}; raise SystemExit({status})"] for status in (0, 1)]
    stage = Stage(name="one", limit_seconds=60, commands=[*commands, commands[0]], has_tests=False)
    outcome = run_stage(stage, tmp_path / "results")
    assert list(outcome.red) == [" ".join(commands[1])]
    assert ran.read_text() == "xx"


def test_a_command_that_is_stuck_is_ended() -> None:
    stuck = [sys.executable, "-c", "import signal; signal.pause()"]
    assert run_command(stuck, os.environ, stuck_seconds=0) == 1


def test_all_stages_run_when_the_first_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    passes = (
        f"import os; open(os.environ['TEST_RESULTS'], 'w').write({write_results({'passed': 2})!r})"
    )
    stages = [
        Stage(
            name="first",
            limit_seconds=60,
            commands=[[sys.executable, "-c", "raise SystemExit(2)"]],
        ),
        Stage(name="second", limit_seconds=60, commands=[[sys.executable, "-c", passes]]),
    ]
    monkeypatch.setattr(landing, "list_stages", lambda *_, **__: stages)
    monkeypatch.setattr(landing, "start_installing", lambda _: None)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    assert landing.main() == 1
    output = capfd.readouterr().out
    assert "RED first: " in output
    assert output.splitlines()[-1] == "2 passed, 1 failed"
    stages.pop(0)
    assert landing.main() == 0
    assert capfd.readouterr().out.splitlines()[-1] == "2 passed, 0 failed"


def test_the_stages_name_targets_of_the_makefile_and_take_fifteen_minutes(tmp_path: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    stages = landing.list_stages(tmp_path, "/usr/bin/python3", has_npm=True)
    named = {
        command[3 if command[1] == "-C" else 1]
        for stage in stages
        for command in stage.commands
        if command[0] == "make"
    }
    assert named == {"setup", "test", "newcomer", "gate", "conformance"}
    assert named <= targets
    assert sum(stage.limit_seconds for stage in stages) <= 15 * 60
