"""Every rule that code and tests cite is in `docs/rules`, and a reader gets to every page of `docs`."""

import posixpath
import re
from pathlib import Path

import pytest

from tests.rules import ROOT, unknown
from tolsey.http.description.guides import guide_of

LINK = re.compile(r"\]\(([^)#\s]+\.md)")


@pytest.mark.parametrize(
    "citation",
    ["rules/credits#bounty", "rules/nowhere", "product/billing.md", "Contract, section 3"],
)
def test_a_rule_that_a_clone_does_not_have_is_found(citation: str, tmp_path: Path) -> None:
    file = tmp_path / "tolsey" / "ledger.py"
    file.parent.mkdir()
    file.write_text(f'"""What is kept (rules/credits#holds; docs/rules/launch.md; {citation})."""')

    assert unknown(tmp_path) == [f"tolsey/ledger.py cites {citation}"]


def test_every_page_is_reached_from_the_readme() -> None:
    seen, next_ones = set[str](), {"README.md"}
    while next_ones:
        page = next_ones.pop()
        seen.add(page)
        links = LINK.findall((ROOT / page).read_text("utf-8"))
        led_to = {posixpath.normpath(posixpath.join(posixpath.dirname(page), one)) for one in links}
        next_ones |= {one for one in led_to if "://" not in one} - seen

    pages = {file.relative_to(ROOT).as_posix() for file in (ROOT / "docs").rglob("*.md")}
    assert pages - seen == set()
    assert [page for page in seen if not (ROOT / page).is_file()] == []


@pytest.mark.parametrize("slug", ["rules", "rules/credits", "operate/install", "start"])
def test_the_rules_are_served_like_the_other_guides(slug: str) -> None:
    assert guide_of(slug).title
