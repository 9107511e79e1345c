"""Every rule that code and tests cite stands in `docs/rules`: `python -m tests.rules`."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tolsey.http.description.guides import anchor_of

ROOT = Path(__file__).parents[1]
CITED = re.compile(r"\brules/[a-z-]+(?:#[a-z0-9-]+)?")
ELSEWHERE = re.compile(
    r"\b[Pp]roduct page\b|(?<!docs/rules/)\b(?:product/)?"
    r"(?:billing|commerce|mcp|intelligence|esign|marketplace|launch|compliance)\.md"
    r'|\b[Ss]pecification, ["A-Z]|\b[Cc]ontract,? (?:section )?\d+(?=[:;,.)])'
)
"""Pages that a clone does not have."""
READ = {".py", ".sql", ".patch", ".toml"}


def rules(folder: Path = ROOT / "docs" / "rules") -> set[str]:
    """Name all rules as they are cited: their pages, and the parts of these."""
    found = set()
    for page in folder.iterdir():
        name = f"rules/{page.stem}"
        headings = re.findall(r"^## (.+)$", page.read_text("utf-8"), flags=re.MULTILINE)
        found |= {name, *(f"{name}#{anchor_of(heading)}" for heading in headings)}
    return found


def cited(root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """Name each file and what it cites: rules, and pages that are not here."""
    for folder in ("tolsey", "tests", "bench"):
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in READ and "rules" not in file.stem:
                text = file.read_text("utf-8")
                place = file.relative_to(root).as_posix()
                yield from ((place, one) for one in CITED.findall(text))
                yield from ((place, one) for one in ELSEWHERE.findall(text))


def unknown(root: Path = ROOT) -> list[str]:
    """Say what is cited and is no rule."""
    known = rules()
    return [f"{file} cites {one}" for file, one in cited(root) if one not in known]


if __name__ == "__main__":
    wrong = unknown()
    advice = "Cite a part of a page of docs/rules, as in rules/credits#holds; a new rule gets a sentence there."
    sys.exit("\n".join([*wrong, advice]) if wrong else 0)
