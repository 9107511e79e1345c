"""Pages for people name files of this repository: those are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(ROOT.glob("docs/**/*.md"))
ROOTS = (ROOT, ROOT / "tolsey")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_module_that_a_page_names_is_there(page: Path) -> None:
    named = re.findall(r"`(\w[\w./-]*/[\w.-]+\.py)`", page.read_text())
    assert [name for name in named if not any((root / name).is_file() for root in ROOTS)] == []


def test_every_place_of_the_glossary_is_there() -> None:
    rows = re.findall(r"^\|.*\| ([^|]+) \|$", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    places = [place for row in rows for place in re.findall(r"`([\w./]+)`", row)]
    assert len(places) > 30
    assert [one for one in places if not any((root / one).exists() for root in ROOTS)] == []
