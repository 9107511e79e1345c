"""Runs a failed test once more, alone, in a fresh process: `pytest --retry`, as CI runs every suite.

What passes the second time and may be quarantined doesn't fail the run. Where `TEST_RESULTS` names a file, the
counts and failures of the run are added to it as a line of JSON.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.ci.quarantine import (
    LIST,
    MOST_LISTED,
    Failure,
    Verdict,
    judge,
    read_quarantine,
    write_entry,
)

RESULTS: Final = "TEST_RESULTS"
MOST_RETRIED: Final = MOST_LISTED
"""When more tests fail they have a common cause, and none passes by running again."""
SECONDS: Final = 600
"""For one test alone; pytest-timeout ends most earlier."""
TAIL: Final = 3_000


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--retry", action="store_true", help="Run a failed test once more, alone.")


def pytest_configure(config: pytest.Config) -> None:
    # Removed from the environment: a test that runs pytest must not report to the same file.
    results = os.environ.pop(RESULTS, None)
    config.pluginmanager.register(Retry(config, Path(results) if results else None), "retry")


class Retry:
    """Judges the failures of a run at its end."""

    def __init__(self, config: pytest.Config, results: Path | None) -> None:
        self._config = config
        self._results = results
        self._output: list[str] = []
        self._verdict = Verdict({}, (), ())

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if reporter is None or hasattr(self._config, "workerinput"):
            return
        failed = _first_by_id([*reporter.stats.get("failed", ()), *reporter.stats.get("error", ())])
        red = dict.fromkeys(failed, "failed")
        is_whole = session.exitstatus == pytest.ExitCode.TESTS_FAILED and not session.shouldfail
        if self._config.option.retry and is_whole and len(failed) <= MOST_RETRIED:
            failures = [self._run_again(report) for report in failed.values()]
            self._verdict = judge(failures, read_quarantine(self._config.rootpath / LIST))
            red = dict(self._verdict.red)
            if not red:
                session.exitstatus = pytest.ExitCode.OK
        if session.shouldfail:
            red["pytest"] = str(session.shouldfail)
        if self._results is not None:
            counted = {
                "passed": len(reporter.stats.get("passed", ())),
                "red": red,
                "quarantined": list(self._verdict.quarantined),
            }
            with self._results.open("a") as file:
                file.write(json.dumps(counted) + "\n")

    def _run_again(self, report: Any) -> Failure:
        with tempfile.TemporaryDirectory() as folder:
            results = Path(folder) / "results"
            command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", report.nodeid]
            try:
                done = subprocess.run(
                    command,
                    cwd=self._config.rootpath,
                    env={**os.environ, RESULTS: str(results)},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    timeout=SECONDS,
                    check=False,
                )
                output, status = done.stdout, done.returncode
            except subprocess.TimeoutExpired as expired:
                output, status = str(expired), 1
            # A test that is skipped the second time has not passed.
            passed = status == 0 and json.loads(results.read_text())["passed"] > 0
        if not passed:
            self._output.append(f"{report.nodeid}, alone:\n{output[-TAIL:]}")
        return Failure(
            report.nodeid, "served" in report.keywords, "exact" in report.keywords, passed
        )

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        verdict = self._verdict
        if not verdict.red and not verdict.quarantined:
            return
        terminalreporter.section("retried")
        for line in (
            *self._output,
            *(f"RED {id}: {why}" for id, why in verdict.red.items()),
            *(f"QUARANTINED {id}: passed when it ran alone" for id in verdict.quarantined),
        ):
            terminalreporter.write_line(line)
        if verdict.to_list:
            terminalreporter.write_line(
                "Fix each, or add it to tests/quarantine.toml with its cause:"
            )
        for entry in verdict.to_list:
            terminalreporter.write_line(write_entry(entry))
        # The closing line counts as failed only what fails the run.
        stats = terminalreporter.stats
        for outcome in ("failed", "error"):
            reports = stats.pop(outcome, [])
            stats["quarantined"] = stats.get("quarantined", []) + [
                report for report in reports if report.nodeid in verdict.quarantined
            ]
            if kept := [report for report in reports if report.nodeid in verdict.red]:
                stats[outcome] = kept


def _first_by_id(reports: Sequence[Any]) -> dict[str, Any]:
    """Return one report of each test: one that failed may fail to be torn down, too."""
    by_id: dict[str, Any] = {}
    for report in reports:
        by_id.setdefault(report.nodeid, report)
    return by_id
