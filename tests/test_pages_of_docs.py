"""What the README and the guides show and say to type."""

import re

import pytest

from tests.badge import PICTURES, drawn
from tests.rules import ROOT
from tolsey.http.selling.badge import Theme

PAGES = ["README.md", *(page.relative_to(ROOT).as_posix() for page in ROOT.glob("docs/**/*.md"))]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_badge_of_the_readme_is_drawn_as_the_service_draws_one(theme: Theme) -> None:
    name = PICTURES[theme]
    assert (ROOT / "docs" / name).read_text() == drawn(theme), "python -m tests.badge --write"
    assert f'"docs/{name}"' in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", PAGES)
def test_no_command_is_typed_with_a_comment_which_zsh_would_take_for_arguments(page: str) -> None:
    typed = re.findall(r"```sh\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    lines = [line for block in typed for line in block.splitlines()]

    assert [line for line in lines if re.search(r"(?:^|\s)#(?:\s|$)", line)] == []


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md", "SECURITY.md", "deploy/scale.md"])
def test_a_link_leads_to_a_file_that_is_there_and_to_a_heading_of_it(page: str) -> None:
    links = re.findall(r"\]\((?!https?:|mailto:)([^)#\s]*)#?([^)\s]*)\)", (ROOT / page).read_text())
    lost = []
    for file, heading in links:
        leads_to = ((ROOT / page).parent / file).resolve() if file else ROOT / page
        if not leads_to.exists() or (heading and heading not in headings(leads_to.read_text())):
            lost.append(f"{file}#{heading}")
    assert lost == []


def headings(text: str) -> set[str]:
    """Name the headings of a page as links do: small, without marks, with hyphens for spaces."""
    lines = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-") for line in lines}


def test_the_readme_is_a_page_of_some_hundred_lines() -> None:
    assert 60 <= len((ROOT / "README.md").read_text().splitlines()) <= 120
