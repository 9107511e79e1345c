"""Runs the stages of CI and of a night, and says what came of them.

It starts before anything is installed, so it imports nothing but Python's own modules.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

ROOT: Final = Path(__file__).parents[2]
STUCK_SECONDS: Final = 1_800
"""A command that runs for so long, and four times its limit, is ended; pytest ends each test much earlier."""
SUPPORTED: Final = "import ensurepip, sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A part of a run: its commands run one after the other until one fails."""

    name: str
    limit_seconds: int
    """What it may take on two quiet cores. A longer run is reported, but not red: a busy machine is no defect."""
    commands: Sequence[Sequence[str]]
    has_tests: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a stage."""

    name: str
    limit_seconds: int
    seconds: float
    passed: int
    red: Mapping[str, str]
    """Why each test, check or command failed, by its name."""
    quarantined: Sequence[str] = ()


def conclude(stage: Stage, seconds: float, results: str, failed_command: str | None) -> Outcome:
    """Return a stage's outcome, given the command that failed and what pytest and the checks wrote.

    `tests/ci/retry.py` and the Makefile write a line of JSON for each run.
    """
    passed, red, quarantined = 0, dict[str, str](), list[str]()
    for line in results.splitlines():
        run: dict[str, Any] = json.loads(line)
        passed += run.get("passed", 0)
        red |= run.get("red", {})
        quarantined += run.get("quarantined", [])
    if failed_command is not None and not red:
        red = {failed_command: "failed, as its output says"}
    if stage.has_tests and not passed and not red:
        red = {stage.name: "no test ran"}
    return Outcome(
        name=stage.name,
        limit_seconds=stage.limit_seconds,
        seconds=seconds,
        passed=passed,
        red=red,
        quarantined=quarantined,
    )


def summarize(outcomes: Sequence[Outcome]) -> str:
    """Write the durations, all failures, and a closing line with the counts."""
    width = max(len(outcome.name) for outcome in outcomes)
    lines = []
    for outcome in outcomes:
        verdict = "RED" if outcome.red else "green"
        if outcome.seconds > outcome.limit_seconds:
            verdict += ", over its limit"
        lines.append(
            f"{outcome.name:{width}}  {write_minutes(outcome.seconds):>5}"
            f"  of {write_minutes(outcome.limit_seconds):>5}  {verdict}"
        )
    lines.append(f"{'total':{width}}  {write_minutes(sum(one.seconds for one in outcomes)):>5}")
    for outcome in outcomes:
        lines += [f"RED {outcome.name}: {name}: {why}" for name, why in outcome.red.items()]
        lines += [f"QUARANTINED {outcome.name}: {id}" for id in outcome.quarantined]
    passed = sum(outcome.passed for outcome in outcomes)
    failed = sum(len(outcome.red) for outcome in outcomes)
    return "\n".join([*lines, f"{passed} passed, {failed} failed"])


def write_minutes(seconds: float) -> str:
    """Write a duration as minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"


def run_stage(stage: Stage, results: Path, log: IO[bytes] | None = None) -> Outcome:
    """Run a stage's commands until one fails; `results` is a file of its own, `log` takes the output."""
    report(f"\n=== {stage.name}")
    results.write_text("")
    environment = {**os.environ, **stage.environment, "TEST_RESULTS": str(results)}
    stuck_seconds = max(STUCK_SECONDS, 4 * stage.limit_seconds)
    began, failed_command = time.monotonic(), None
    for command in stage.commands:
        if run_command(command, environment, stuck_seconds, log):
            failed_command = " ".join(command)
            break
    seconds = time.monotonic() - began
    report(f"=== {stage.name} took {write_minutes(seconds)}")
    return conclude(stage, seconds, results.read_text(), failed_command)


def run_command(
    command: Sequence[str],
    environment: Mapping[str, str],
    stuck_seconds: float,
    log: IO[bytes] | None = None,
) -> int:
    """Run a command without input and return its exit status; end it when it is stuck."""
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT if log else None,
        start_new_session=True,
    ) as process:
        try:
            return process.wait(stuck_seconds)
        except subprocess.TimeoutExpired:
            report(f"{' '.join(command)} was ended after {stuck_seconds:.0f} seconds")
            return 1
        finally:
            # It may have left behind processes that it started.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def runs_tolsey(python: str) -> bool:
    """Return whether tolsey runs on a Python; a version manager has names that it won't run."""
    try:
        done = subprocess.run([python, "-c", SUPPORTED], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def report(line: str) -> None:
    """Write a line to the run's output."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
