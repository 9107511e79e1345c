"""The check of the project's prose finds what it should, leaves good English alone, and its list only shrinks."""

import re
from pathlib import Path

import pytest

from tests.writing.__main__ import compare, count_violations, list_violations, shrink, to_toml
from tests.writing.fragments import ROOT, Fragment, Kind, read_markdown, read_python, read_template
from tests.writing.patterns import GLOSSARY, PATTERNS, REJECTED_NAMES, find_violations

PAGE, HEADING = Kind.PAGE, Kind.PAGE_HEADING
MESSAGE, DOC, DOCSTRING = Kind.MESSAGE, Kind.DOC, Kind.DOCSTRING
PAIRS = [
    (DOC, "Who asks keeps the ask until it is answered", "The caller retains the request until it gets a reply."),
    (PAGE, "Lent by the seller", "Seller financing"),
    (PAGE, "What came back", "Refunds"),
    (PAGE, "Looked into", "Mark as reviewed"),
    (HEADING, "What lets you in, and what you get", "Security and notifications"),
    (HEADING, "What wants doing", "Needs attention"),
    (PAGE, "The seller lets the buyer in, or refuses", "Buyer Capital requested access. Approve or decline."),
    (MESSAGE, "It changed since you looked: look again.", "The listing changed after you loaded it. Reload the page and try again."),
    (PAGE, "A rate is no promise.", "This estimate uses the last four weeks of sales."),
    (PAGE, "Revenue of 30 days", "30-day revenue"),
    (PAGE, "Rules of the chat", "Chat limits"),
    (PAGE, "Of your plan", "Plan credits"),
    (
        DOCSTRING,
        "Say what became of an event in the transaction that did it; False when it was said before.",
        "Record the event's outcome in the current transaction. Return False if it was already recorded.",
    ),
    (
        MESSAGE,
        "All in all; else what the platform suggests.",
        "Total to refund, as a decimal with its currency, for example `{...}`. Omit it to use the amount Shopify suggests for the given lines and shipping.",
    ),
    (
        MESSAGE,
        "Only from so much on.",
        "Smallest order subtotal for which the code works, as a decimal with the store's currency, for example `{...}`. Omit for no minimum.",
    ),
    (
        MESSAGE,
        "Of what was said before, to correct it.",
        "The id of an existing memory entry to replace, as returned by `search_memory`. Omit to create a new entry.",
    ),
    (PAGE, "Nothing needs you", "You're all caught up"),
    (PAGE, "Sold, less what came back", "Net sales"),
    (PAGE, "Given back", "Refund rate"),
    (PAGE, "Orders a day", "Orders per day"),
    (PAGE, "Not over", "today so far"),
    (
        PAGE,
        "It stands on a page of its own, a listing. Nobody sees that before you show it.",
        "Your badge gets its own listing page. It stays private until you publish it.",
    ),
    (PAGE, "Show it to everyone", "Publish"),
    (PAGE, "Where the revenue is read", "Revenue sources"),
    (PAGE, "How exactly it is shown", "Display"),
    (PAGE, "Let them in…", "Approve access"),
    (PAGE, "End the talks…", "End negotiations"),
    (
        PAGE,
        "Every move, chained: changing one line breaks all that follow.",
        "A tamper-evident record: each entry includes the hash of the one before it.",
    ),
    (PAGE, "If nobody moves, the deal lapses then.", "If neither party acts by then, the deal expires."),
    (PAGE, "Agents on a lead", "Agents with limits you set"),
    (PAGE, "What is said here is kept nowhere.", "This conversation isn't saved."),
    (PAGE, "Wants not to be read", "Blocks crawlers"),
    (PAGE, "Out of reach", "Unreachable"),
    (PAGE, "Look at it now", "Scan now"),
    (PAGE, "Be told", "Get notified"),
    (PAGE, "What waits for what", "Dependencies"),
    (PAGE, "You need do nothing.", "You can ignore this email."),
    (
        MESSAGE,
        "The cursor is not one of this list: begin at its first page.",
        "The cursor isn't valid for this list. Start again from the first page.",
    ),
    (
        MESSAGE,
        "Whoever runs this service must set the variable that is named.",
        "This feature isn't configured on this server: `VARIABLE` is not set.",
    ),
    (
        MESSAGE,
        "No answer in time; what was asked may still happen.",
        "The request timed out. The operation may still complete; check its status before you retry.",
    ),
    (DOC, "nothing is answered before what it stands on is committed", "no response is sent until its transaction commits"),
    (
        DOC,
        "A class is known by its kind and its own name; two of one name stop the start.",
        "Classes are registered as `kind.Name`. Duplicate names fail at startup.",
    ),
    (
        DOC,
        "See that the former primary stays down: two that both take writes are two truths.",
        "Make sure the old primary stays down. If both accept writes, the data diverges (split brain).",
    ),
    (
        DOC,
        "A deleted store is erased also when its first shop had been forgotten before: it stayed for good.",
        "Fixed: deleting a store whose first shop had already been erased left its data behind.",
    ),
    (
        DOCSTRING,
        "Take a request back of which nothing was done; False where something was.",
        "Withdraw a request none of whose steps has run. Return False otherwise.",
    ),
    (Kind.COMMENT, "# somebody was faster", "# lost the race to another worker"),
    (PAGE, "Such as 190,000.", "Example: 190,000"),
    (DOC, "It is no JSON.", "It is not valid JSON."),
    (DOC, "A shop that is none", "A domain that is not a shop"),
    (PAGE, "The processor says why.", "Stripe declined the card."),
    (DOC, "Have a batch of rows made", "Create a batch of rows"),
    (DOC, "The link is made anew at once.", "The link is created again immediately."),
    (DOC, "It mends by itself and goes on in earnest.", "It recovers automatically and continues in production."),
    (DOC, "A picture of the papers", "An image of the documents"),
    (DOC, "The lease of the owner of the slot of an actor", "The lease of the actor's slot owner"),
    (DOC, "It is read; it is written and sealed; it is sent.", "It is read and written. Then it is sent; nothing else happens."),
    (PAGE, "Mails", "Emails"),
    (HEADING, "Take it back?", "Undo"),
    (DOC, "word " * 26, "word " * 25),
]  # fmt: skip
"""Before and after, mostly from the writing guide."""
GOOD = [
    (MESSAGE, "There is no store with this id."),
    (PAGE, "Tell us about your store"),
    (PAGE, "Keep editing"),
    (PAGE, "Forgot your password?"),
    (PAGE, "What happened"),
    (PAGE, "What's new"),
    (PAGE, "Who can see this listing?"),
    (DOC, "The flag is no longer set, and the value is one of `a`, `b` or `c`."),
    (DOC, "A cursor stands for a page; it expires after 24 hours."),
    (DOC, "Keep the old primary down."),
]


CODE = "x" * 19


def names_of(kind: Kind, text: str) -> list[str]:
    return [found[0].name for found in find_violations(Fragment(kind, 1, text))]


@pytest.mark.parametrize(("kind", "before", "after"), PAIRS)
def test_every_before_is_found_and_no_after_is(kind: Kind, before: str, after: str) -> None:
    assert names_of(kind, before)
    assert names_of(kind, after) == []


@pytest.mark.parametrize(("kind", "text"), GOOD)
def test_good_english_passes(kind: Kind, text: str) -> None:
    assert names_of(kind, text) == []


def test_every_pattern_has_an_example_a_reason_and_a_rewrite() -> None:
    found = {name for kind, before, _ in PAIRS for name in names_of(kind, before)}
    assert {one.name for one in PATTERNS} - found == {"comes-to", "let-go"}
    assert names_of(DOC, "The lease lets go of it.") == ["let-go"]
    assert names_of(DOC, "Sums that come to 9,600") == ["comes-to"]
    assert all(one.reason and one.rewrite for one in PATTERNS)


def test_python_gives_docstrings_comments_and_messages_but_no_code() -> None:
    source = '''"""Return a thing.

A second paragraph with `code that is told`.
"""

async def read():  # a comment
    """Read it."""
    await execute(
        """SELECT 1""",
        "SELECT told FROM rows",
    )
    raise NotFound("no such"
        f" thing {told} here")
    return _("Given back"), {"key": "a value"}
'''
    read = [
        (one.kind, one.line, " ".join(one.text.split()))
        for one in read_python(source, messages=True)
    ]
    assert read == [
        (DOCSTRING, 1, "Return a thing."),
        (DOCSTRING, 3, f"A second paragraph with {CODE}."),
        (Kind.COMMENT, 6, "a comment"),
        (DOCSTRING, 7, "Read it."),
        (MESSAGE, 12, "no such thing xxxxxx here"),
        (PAGE, 14, "Given back"),
    ]  # fmt: skip
    assert {one.kind for one in read_python(source, messages=False)} == {DOCSTRING, Kind.COMMENT}


def test_a_template_gives_the_words_of_the_catalogue_and_its_comments() -> None:
    source = (
        "{# A part. #}\n<h1>{% trans %}Agents{% endtrans %}</h1>\n<p>told</p>\n"
        '{% trans n=page.n %}<b>{{ n }}</b> rows{% endtrans %}{{ _("Show %(count)s", count=2) }}'
    )
    read = [(one.kind, one.line, " ".join(one.text.split())) for one in read_template(source)]
    assert read == [
        (Kind.COMMENT, 1, "A part."),
        (HEADING, 2, "Agents"),
        (PAGE, 4, "xxxxxxx rows"),
        (PAGE, 4, "Show xxxxxxxxx"),
    ]


def test_a_page_of_docs_gives_headings_and_blocks_without_code() -> None:
    source = "# Title\n\nText with `told` in it.\nIts second line.\n\n- item one\n- item two\n\n```sh\ntold\n```\n"
    read = [(one.kind, one.line, " ".join(one.text.split())) for one in read_markdown(source)]
    assert read == [
        (Kind.DOC_HEADING, 1, "Title"),
        (DOC, 3, "Text with xxxxxx in it. Its second line."),
        (DOC, 6, "item one"),
        (DOC, 7, "item two"),
    ]


def test_the_glossary_names_every_place_of_the_navigation() -> None:
    shell = (ROOT / "tolsey/http/layout/shell.py").read_text()
    tabs = (ROOT / "tolsey/http/templates/stores/tabs.html").read_text()
    labels = {*re.findall(r'Destination\(_\("([^"]+)"', shell), *re.findall(r'_\("([^"]+)"', tabs)}
    named = re.findall(r"^\| ([^|]+) \|", GLOSSARY.read_text(), re.MULTILINE)
    known = {name.lower() for row in named for name in (row, f"{row}s", *row.split(", "))}
    known |= {name.lower() for name in REJECTED_NAMES}
    assert len(labels) > 12
    assert {label for label in labels if label.lower() not in known} == set()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "new.md").write_text("It was told twice,\nand told once.\n")
    return tmp_path


def test_a_violation_of_a_new_file_is_reported_with_its_line_and_a_rewrite(root: Path) -> None:
    reported = list(compare(list(list_violations(root)), {}))
    assert reported[0] == "docs/new.md: 2 of told, 0 excepted:"
    assert reported[1].startswith('  docs/new.md:1: told: "told"')
    assert reported[2].startswith("  docs/new.md:2: told: ")
    assert "write: reported, sent" in reported[1]


@pytest.mark.parametrize(
    ("excepted", "problems"),
    [({"told": 2}, 0), ({"told": 1}, 3), ({"told": 3}, 1), ({"told": 2, "anew": 1}, 1)],
)
def test_the_counts_have_to_be_exact(root: Path, excepted: dict[str, int], problems: int) -> None:
    assert len(list(compare(list(list_violations(root)), {"docs/new.md": excepted}))) == problems


def test_the_list_of_exceptions_only_shrinks(root: Path) -> None:
    counts = count_violations(list(list_violations(root)))
    assert shrink(counts, {"docs/new.md": {"told": 5, "anew": 1}, "gone.md": {"told": 1}}) == counts
    assert shrink(counts, {"docs/new.md": {"told": 1}}) == {"docs/new.md": {"told": 1}}
    assert shrink(counts, {}) == {}
    assert shrink(counts, None) == counts
    assert '"docs/new.md" = { told = 2 }\n' in to_toml(counts)
