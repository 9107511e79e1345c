"""Runs what is too long for a landing, and writes a report: `make nightly`.

`NIGHT=n` gives the seed and the night of the week whose campaign runs; it is today's date where none is given.
`ONLY=name` runs one part. A part that passed at this commit isn't run again, so a stopped run resumes
where it ended. The state, the output of each part and `report.md` are in `.nightly`.
"""

import datetime as dt
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from tests.ci.stages import ROOT, Outcome, Stage, report, run_stage, runs_tolsey, summarize

HOME: Final = ROOT / ".nightly"
TOTAL_SECONDS: Final = 3_600
CAMPAIGNS: Final = {
    "campaign-fuzzing": 480,
    "campaign-killed": 900,
    "campaign-cluster": 480,
    "campaign-money": 600,
    "campaign-nemesis": 480,
    "campaign-releases": 900,
    "campaign-orders": 600,
}
"""One for each night of a week, targets of the Makefile, with the seconds that each may take."""
VERSIONS: Final = ("3.11", "3.12", "3.13")


def list_parts(night: int, pythons: Mapping[str, str]) -> list[Stage]:
    """List every part, all campaigns included; `pythons` has the path of each other Python."""
    seed = {"CAMPAIGN_SEED": str(night), "FUZZ_SEED": str(night)}
    pytest = (sys.executable, "-m", "pytest", "--forks", "4")
    return [
        Stage(name="slow", limit_seconds=1_200, commands=[["make", "test-slow"]]),
        *(
            Stage(name=name, limit_seconds=seconds, commands=[["make", name]], environment=seed)
            for name, seconds in CAMPAIGNS.items()
        ),
        Stage(
            name=f"seed-{night}",
            limit_seconds=180,
            commands=[[*pytest, "-m", "hypothesis and not slow", f"--hypothesis-seed={night}"]],
            environment={"HYPOTHESIS_PROFILE": "nightly"},
        ),
        *(
            Stage(
                name=f"python-{version}",
                limit_seconds=390,
                commands=[["make", "suite", f"VENV=.venv-{version}", f"PYTHON={path}"]],
            )
            for version, path in pythons.items()
        ),
        Stage(name="conformance", limit_seconds=180, commands=[["make", "conformance"]]),
    ]


def find_pythons() -> dict[str, str]:
    """Find the Pythons other than this one, also those that pyenv keeps and doesn't put on the PATH."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    kept = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = {}
    for version in VERSIONS:
        name = f"python{version}"
        paths = [shutil.which(name) or "", *map(str, sorted(kept.glob(f"{version}*/bin/{name}")))]
        if version != own and (runs := [path for path in paths if runs_tolsey(path)]):
            found[version] = runs[0]
    return found


def choose_parts(parts: Sequence[Stage], night: int, only: str | None) -> list[Stage]:
    """Return tonight's parts, or those that `only` names; raises ValueError where it names none."""
    if only is None:
        tonight = list(CAMPAIGNS)[night % len(CAMPAIGNS)]
        return [part for part in parts if part.name not in CAMPAIGNS or part.name == tonight]
    chosen = [part for part in parts if part.name == only or part.name.startswith(f"{only}-")]
    if not chosen:
        raise ValueError(f"ONLY={only} names no part: {', '.join(part.name for part in parts)}")
    return chosen


def read_commit() -> str:
    """Name the code that is tested: its commit, and what was changed since."""
    commit, changed = (
        subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
        for command in (
            ["git", "rev-parse", "--short=12", "HEAD"],
            ["git", "diff", "HEAD"],
        )
    )
    name = commit.decode().strip()
    return f"{name}-{hashlib.sha256(changed).hexdigest()[:8]}" if changed else name


def run_part(part: Stage, folder: Path) -> Outcome:
    """Run a part and record what came of it."""
    with (folder / f"{part.name}.log").open("wb") as log:
        outcome = run_stage(part, folder / f"{part.name}.jsonl", log)
    (folder / f"{part.name}.json").write_text(json.dumps(asdict(outcome)))
    return outcome


def read_passed(part: Stage, folder: Path) -> Outcome | None:
    """Return what came of a part that already passed."""
    recorded = folder / f"{part.name}.json"
    if not recorded.exists():
        return None
    outcome = Outcome(**json.loads(recorded.read_text()))
    return None if outcome.red else outcome


def write_report(
    commit: str, night: int, outcomes: Sequence[Outcome], left_out: Sequence[str]
) -> str:
    """Write the report: one page, with what did not run."""
    lines = [f"# Nightly run {night} of {commit}", ""]
    lines += [f"    {line}" for line in summarize(outcomes).splitlines()] if outcomes else []
    if left_out:
        lines += ["", f"Not started, because the hour was up: {', '.join(left_out)}."]
        lines += ["Run the same command again to continue with these."]
    return "\n".join([*lines, "", f"The output of each part is in `.nightly/{commit}`.", ""])


def main(night: int, only: str | None) -> int:
    """Run tonight's parts; returns an exit status."""
    os.environ.pop("CI", None)  # a failure at night is looked into, not run again
    try:
        parts = choose_parts(list_parts(night, find_pythons()), night, only)
    except ValueError as error:
        report(str(error))
        return 2
    commit = read_commit()
    folder = HOME / commit
    folder.mkdir(parents=True, exist_ok=True)
    outcomes, left_out = list[Outcome](), list[str]()
    began = time.monotonic()
    for part in parts:
        outcome = None if only else read_passed(part, folder)
        if outcome is None:
            if not only and time.monotonic() - began + part.limit_seconds > TOTAL_SECONDS:
                left_out.append(part.name)
                continue
            outcome = run_part(part, folder)
        outcomes.append(outcome)
        text = write_report(commit, night, outcomes, left_out)
        (HOME / "report.md").write_text(text)
    text = write_report(commit, night, outcomes, left_out)
    (HOME / "report.md").write_text(text)
    report(text)
    return 1 if left_out or any(outcome.red for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(
        main(
            int(os.environ.get("NIGHT") or dt.datetime.now(dt.UTC).toordinal()),
            os.environ.get("ONLY") or None,
        )
    )
