"""Check the project's prose: `python -m tests.writing`, part of `make check`.

Text from before the check is counted in `exceptions.toml`, per file and pattern. `--shrink` lowers these
counts to what is left; it never raises one. `--around PATH` prints every violation of a file, counted or not.
"""

import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.writing.fragments import ROOT, list_fragments
from tests.writing.patterns import Pattern, find_violations

EXCEPTIONS: Final = Path(__file__).with_name("exceptions.toml")
REASON: Final = (
    "# Violations in text that was written before `python -m tests.writing`, per file and pattern.\n"
    "# Written by `python -m tests.writing --shrink`, which only lowers counts. New files have none.\n"
)

Counts = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Violation:
    """A pattern that a line of a file matches."""

    file: str
    line: int
    pattern: Pattern
    text: str

    def __str__(self) -> str:
        one = self.pattern
        return f'{self.file}:{self.line}: {one.name}: "{self.text}": {one.reason}; write: {one.rewrite}'


def list_violations(root: Path = ROOT) -> Iterator[Violation]:
    """List every violation in the project."""
    for file, fragments in list_fragments(root):
        for fragment in fragments:
            for pattern, line, text in find_violations(fragment):
                yield Violation(file, line, pattern, text)


def count_violations(violations: list[Violation]) -> dict[str, dict[str, int]]:
    """Count violations per file and pattern."""
    counts: dict[str, dict[str, int]] = {}
    for (file, name), number in sorted(
        Counter((one.file, one.pattern.name) for one in violations).items()
    ):
        counts.setdefault(file, {})[name] = number
    return counts


def compare(violations: list[Violation], excepted: Counts) -> Iterator[str]:
    """List what differs from the exceptions: each violation of a raised count, and each count to lower."""
    counts = count_violations(violations)
    pairs = {(file, name) for one in (counts, excepted) for file in one for name in one[file]}
    for file, name in sorted(pairs):
        now, before = counts.get(file, {}).get(name, 0), excepted.get(file, {}).get(name, 0)
        if now > before:
            yield f"{file}: {now} of {name}, {before} excepted:"
            yield from (f"  {v}" for v in violations if (v.file, v.pattern.name) == (file, name))
        elif now < before:
            yield f"{file}: {now} of {name}, {before} excepted: run `python -m tests.writing --shrink`"


def shrink(counts: Counts, excepted: Counts | None) -> dict[str, dict[str, int]]:
    """Lower the exceptions to the present counts; without exceptions, start with the present ones."""
    if excepted is None:
        return {file: dict(names) for file, names in counts.items()}
    lowered = {
        file: {
            name: min(number, excepted[file][name])
            for name, number in names.items()
            if name in excepted[file]
        }
        for file, names in counts.items()
        if file in excepted
    }
    return {file: names for file, names in lowered.items() if names}


def to_toml(excepted: Counts) -> str:
    """Write exceptions as TOML, one line for each file."""
    lines = (
        f'"{file}" = {{ {", ".join(f"{name} = {number}" for name, number in names.items())} }}\n'
        for file, names in excepted.items()
    )
    return "".join([REASON, *lines])


def main(arguments: list[str]) -> int:
    """Run the check, lower the exceptions, or print the violations of some files."""
    violations = list(list_violations())
    excepted = tomllib.loads(EXCEPTIONS.read_text("utf-8")) if EXCEPTIONS.is_file() else None
    match arguments:
        case ["--shrink"]:
            lowered = shrink(count_violations(violations), excepted)
            EXCEPTIONS.write_text(to_toml(lowered), "utf-8")
            return 0
        case ["--around", *paths]:
            found = [str(one) for one in violations if one.file.startswith(tuple(paths))]
        case _:
            found = list(compare(violations, excepted or {}))
    sys.stdout.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
