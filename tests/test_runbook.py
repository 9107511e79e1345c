"""What the pages for operators tell somebody to type is there: commands, options, causes."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tolsey.__main__ import COMMANDS, main
from tolsey.http.operators.diagnosis import PAGES, RANKS

DOCS = Path(__file__).parents[1] / "docs"
PAGES_OF_OPERATORS = sorted((DOCS / "operate").glob("*.md"))
TYPED = re.compile(
    r"(?<![\w./-])tolsey ([a-z][a-z-]+(?: [a-z][a-z-]+)?)((?: (?:--[a-z][a-z-]*(?:[= ][A-Z0-9]+)?))*)"
)
"""A command where it stands, and the options that follow it."""
INSTALLED = {"verify-bundle", "sandbox"}


def typed() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Give each command that a page names in code, with the page and the options."""
    for page in PAGES_OF_OPERATORS:
        text = page.read_text()
        code = [*re.findall(r"`([^`\n]+)`", text), *re.findall(r"```sh\n(.*?)```", text, re.DOTALL)]
        for words, options in (found for one in code for found in TYPED.findall(one)):
            yield page.name, words, tuple(re.findall(r"--[a-z-]+", options))


def command_of(words: str) -> click.Command | None:
    """Find the command that words name, as the program does."""
    found: click.Command | None = main
    for word in words.split():
        if not isinstance(found, click.Group):
            return found  # what follows is what it is given
        found = found.get_command(click.Context(found), word)
    return found


def test_every_command_and_option_that_a_page_names_is_one() -> None:
    seen = set()
    for page, words, options in typed():
        command = command_of(words)
        assert command is not None, f"{page}: tolsey {words}"
        known = {name for one in command.params for name in one.opts}
        assert set(options) <= known, f"{page}: tolsey {words} {options}"
        seen.add(words.split()[0])
    assert seen >= COMMANDS.keys() - INSTALLED, "no page for operators says what it is for"


@pytest.mark.parametrize("cause", RANKS)
def test_the_runbook_says_what_each_cause_means(cause: str) -> None:
    table = (DOCS / "operate" / "runbook.md").read_text()
    assert re.search(rf"^\|[^|]*`{cause}`[^|]*\|", table, re.MULTILINE)


def test_the_runbook_names_no_cause_that_is_not_told() -> None:
    table = (
        (DOCS / "operate" / "runbook.md").read_text().partition("| cause |")[2].partition("\n\n")[0]
    )
    named = {
        one for line in table.splitlines()[2:] for one in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    assert named == set(RANKS)
    assert set(PAGES) <= named
