"""The rule that says which failed tests may pass CI: `python -m tests.ci.quarantine` checks the list.

A failed test runs once more, alone, in a fresh process. `judge` takes what came of that and returns the verdict.
"""

import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
LIST: Final = Path("tests/quarantine.toml")
MOST_LISTED: Final = 10
LANDINGS: Final = 5
"""An entry is good for so many landings, the one that adds it included."""
UNCOUNTED_SECONDS: Final = 24 * 3600
"""Commits may go on for so long after the last landing that was counted, while a test is listed."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A test that failed, and what came of its second run."""

    id: str
    has_server: bool
    is_exact: bool
    passed_alone: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """A test that is listed."""

    id: str
    added: int
    cause: str


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The list as it is committed."""

    landing: int = 0
    entries: Sequence[Entry] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What CI makes of the failures of a run."""

    red: Mapping[str, str]
    """Why each test that fails the run does so, by its id."""
    quarantined: Sequence[str]
    """The tests that failed once and pass."""
    to_list: Sequence[Entry]
    """What the next landing adds to the list, with its cause; or fixes."""


def judge(failures: Iterable[Failure], quarantine: Quarantine) -> Verdict:
    """Return which failures fail the run (docs/contributing.md, "Quarantine")."""
    listed = {entry.id for entry in quarantine.entries}
    red: dict[str, str] = {}
    quarantined: list[str] = []
    to_list: list[Entry] = []
    for failure in failures:
        if not failure.passed_alone:
            red[failure.id] = "failed again when it ran alone"
        elif failure.is_exact:
            red[failure.id] = "passed when it ran alone, but is marked exact"
        elif not failure.has_server:
            red[failure.id] = "passed when it ran alone, but needs no server"
        elif failure.id in listed:
            quarantined.append(failure.id)
        elif len(listed) + len(to_list) >= MOST_LISTED:
            red[failure.id] = f"passed when it ran alone, but {MOST_LISTED} tests are listed"
        else:
            quarantined.append(failure.id)
            to_list.append(Entry(failure.id, quarantine.landing + 1, ""))
    return Verdict(red, quarantined, to_list)


def list_problems(quarantine: Quarantine, uncounted_seconds: int = 0) -> list[str]:
    """List what is wrong with the committed list, given for how long no landing was counted."""
    found = []
    for entry in quarantine.entries:
        if not entry.cause.strip():
            found.append(f"{entry.id} has no cause: write what was seen and what was ruled out.")
        if not 0 < entry.added <= quarantine.landing:
            found.append(f"{entry.id} was added in landing {entry.added}, which has not been yet.")
        if quarantine.landing - entry.added >= LANDINGS:
            found.append(f"{entry.id} was listed for {LANDINGS} landings: fix it, or its cause.")
    counts = Counter(entry.id for entry in quarantine.entries)
    found += [f"{id} is listed {count} times." for id, count in counts.items() if count > 1]
    if len(quarantine.entries) > MOST_LISTED:
        found.append(f"{len(quarantine.entries)} tests are listed; {MOST_LISTED} may be.")
    if quarantine.entries and uncounted_seconds > UNCOUNTED_SECONDS:
        found.append("No landing was counted for a day: raise `landing` by one.")
    return found


def read_quarantine(file: Path) -> Quarantine:
    """Read the list; raises ValueError where it has other fields than its comment shows."""
    document: dict[str, Any] = tomllib.loads(file.read_text())
    try:
        entries = tuple(Entry(**table) for table in document.pop("test", ()))
        return Quarantine(**document, entries=entries)
    except TypeError as error:
        raise ValueError(f"{file} can't be read: {error}") from None


def write_entry(entry: Entry) -> str:
    """Write an entry as the list has it."""
    id = entry.id.replace("\\", "\\\\").replace('"', '\\"')
    return f'[[test]]\nid = "{id}"\nadded = {entry.added}\ncause = "{entry.cause}"\n'


def measure_uncounted_seconds() -> int:
    """Return the seconds between the commit that counted a landing and the latest; 0 without git."""
    counted = _commit_time("-G", "^landing = ", "--", str(LIST))
    return _commit_time() - counted if counted else 0


def _commit_time(*options: str) -> int:
    command = ["git", "log", "-1", "--format=%ct", *options]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return 0
    return int(done.stdout.strip() or 0)


def main() -> int:
    """Report what is wrong with the list; returns an exit status."""
    quarantine = read_quarantine(ROOT / LIST)
    problems = list_problems(quarantine, measure_uncounted_seconds())
    problems += [
        f"{entry.id} names a file that does not exist: remove the entry."
        for entry in quarantine.entries
        if not (ROOT / entry.id.partition("::")[0]).is_file()
    ]
    sys.stdout.writelines(f"{LIST}: {problem}\n" for problem in problems)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
