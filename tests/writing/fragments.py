"""Read the prose of the project: pages, messages, tool descriptions, docs, docstrings and comments.

A fragment keeps the length and the line breaks of its source, so that an offset gives a line. Code, markup and
placeholders are replaced by filler of the same length.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
GENERATED: Final = {
    "docs/api.md": "written from docstrings by `python -m tests.curl`",
    "docs/codes.md": "written from tolsey/actors/codes.py",
    "docs/operate/settings.md": "written from the settings by `python -m tests.settings_page`",
}
"""Pages whose source is checked instead."""
PAGES_AT_THE_TOP: Final = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
CODE_FOLDERS: Final = ("tolsey", "tests", "bench")
TEMPLATE_FOLDER: Final = "tolsey/http/templates"


class Kind(Enum):
    """Where a fragment is read."""

    PAGE = auto()
    PAGE_HEADING = auto()
    MESSAGE = auto()
    DOC = auto()
    DOC_HEADING = auto()
    DOCSTRING = auto()
    COMMENT = auto()


@dataclass(frozen=True, slots=True)
class Fragment:
    """A stretch of prose, with the line on which it starts."""

    kind: Kind
    line: int
    text: str


PYTHON_TOKEN: Final = re.compile(
    r'(?P<block>"""(?:[^"\\]|\\.|"(?!""))*""")'
    r"|(?P<comment>\#[^\n]*(?:\n[ \t]*\#[^\n]*)*)"
    r'|(?P<string>"(?:[^"\\\n]|\\.)*"(?:\s*[fr]?"(?!"")(?:[^"\\\n]|\\.)*")*)'
    r"|'(?:[^'\\\n]|\\.)*'",
    re.DOTALL,
)
JOIN: Final = re.compile(r'(?<!\\)"\s*[fr]?"')
PLACEHOLDER: Final = re.compile(r"\{[^{}\n]*\}|%\(\w+\)s")
INLINE_CODE: Final = re.compile(r"``[^`\n]+``|`[^`]+`")
IN_CATALOGUE: Final = re.compile(r"(?:\b_|\bmarked|\bcounted)\(\s*f?$")
IN_ERROR: Final = re.compile(
    r"(?:Error|Refusal|Refused|NotFound|Unauthorized|Forbidden|Conflict|Unprocessable|PaymentRequired"
    r"|Unavailable|InvalidTransition|Rejected|_rejected|problem|Code)\([^()]{0,60}$"
)
SENTENCE: Final = re.compile(r"[A-Z`{][\w'\u2019`{}.-]*,? (?=\S)")
SQL: Final = re.compile(r"[A-Z]{4,} ")
TRANSLATED: Final = re.compile(
    r"(?P<heading><h[1-6][^>]*>)?\{%-?\s*trans\b[^%]*%\}(?P<block>.*?)\{%-?\s*endtrans\s*-?%\}"
    r'|\b_\(\s*(?P<call>"(?:[^"\\]|\\.)*")'
    r"|\{\#(?P<comment>.*?)\#\}",
    re.DOTALL,
)
MARKUP: Final = re.compile(r"<[^<>]*>|\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
FENCE: Final = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
MARKDOWN_MARKS: Final = re.compile(r"\]\([^)\s]*\)|<[^<>]*>|https?://\S+")
BLOCK_END: Final = re.compile(r"\n[ \t]*(?=\n)|\n(?=[ \t]*(?:[-*|#]|\d+\.)[ \t]?)")


def mask(pattern: re.Pattern[str], text: str, filler: str) -> str:
    """Replace each match by a filler of the same length, and keep line breaks."""
    return pattern.sub(lambda found: re.sub(r"[^\n]", filler, found[0]), text)


def list_fragments(root: Path = ROOT) -> Iterator[tuple[str, list[Fragment]]]:
    """List every file that is checked, relative to the root, with its fragments."""
    for file in sorted((root / TEMPLATE_FOLDER).rglob("*.html")):
        yield file.relative_to(root).as_posix(), list(read_template(file.read_text("utf-8")))
    for folder in CODE_FOLDERS:
        for file in sorted((root / folder).rglob("*.py")):
            yield (
                file.relative_to(root).as_posix(),
                list(read_python(file.read_text("utf-8"), messages=folder == "tolsey")),
            )
    pages = [*(root / name for name in PAGES_AT_THE_TOP), *sorted((root / "docs").rglob("*.md"))]
    for file in pages:
        name = file.relative_to(root).as_posix()
        if name not in GENERATED and file.is_file():
            yield name, list(read_markdown(file.read_text("utf-8")))


def split_blocks(kind: Kind, line: int, text: str) -> Iterator[Fragment]:
    """Split a text into paragraphs and list items, so that no sentence runs across them."""
    start = 0
    for end in [*(found.start() for found in BLOCK_END.finditer(text)), len(text)]:
        block = text[start:end].lstrip()
        if block:
            yield Fragment(kind, line + text.count("\n", 0, end - len(block)), block)
        start = end


def read_python(source: str, *, messages: bool) -> Iterator[Fragment]:
    """Read docstrings and comments, and with `messages` the strings that people or models read."""
    line, counted = 1, 0
    for token in PYTHON_TOKEN.finditer(source):
        text, start = token[0], token.start()
        kind = _kind_of_token(token, source) if messages or token["string"] is None else None
        if kind is None:
            continue
        line += source.count("\n", counted, start)
        counted = start
        if kind is Kind.COMMENT:
            yield Fragment(kind, line, mask(INLINE_CODE, text.replace("#", " "), "x"))
        elif kind is Kind.DOCSTRING:
            yield from split_blocks(kind, line, mask(INLINE_CODE, text.replace('"""', "   "), "x"))
        else:
            inner = mask(JOIN, " " + text[1:-1] + " ", " ")
            yield Fragment(kind, line, mask(PLACEHOLDER, mask(INLINE_CODE, inner, "x"), "x"))


def _kind_of_token(token: re.Match[str], source: str) -> Kind | None:
    before = source[max(0, token.start() - 90) : token.start()]
    if token["comment"] is not None:
        return Kind.COMMENT
    if token["block"] is not None:
        code = before.rstrip()
        is_docstring = before.rstrip(" r")[-1:] in {"\n", ""} and code[-1:] not in set("(,=[{+")
        return Kind.DOCSTRING if is_docstring else None
    if token["string"] is None:
        return None
    if IN_CATALOGUE.search(before):
        return Kind.PAGE
    text = token["string"][1:]
    if SENTENCE.match(text) and not SQL.match(text):
        return Kind.MESSAGE
    return Kind.MESSAGE if " " in text and IN_ERROR.search(before) else None


def read_template(source: str) -> Iterator[Fragment]:
    """Read what a template puts through the catalogue, and its comments."""
    for found in TRANSLATED.finditer(source):
        group = found.lastgroup or ""
        line = 1 + source.count("\n", 0, found.start(group))
        if group == "comment":
            yield Fragment(Kind.COMMENT, line, mask(INLINE_CODE, found[group], "x"))
        elif group == "call":
            yield Fragment(Kind.PAGE, line, mask(PLACEHOLDER, found[group][1:-1], "x"))
        else:
            is_heading = found["heading"] is not None
            kind = Kind.PAGE_HEADING if is_heading else Kind.PAGE
            yield Fragment(kind, line, _unmarked(found["block"]))


def _unmarked(text: str) -> str:
    shown = re.sub(r"\{\{.*?\}\}", lambda found: "x" * len(found[0]), text, flags=re.DOTALL)
    return mask(MARKUP, shown, " ")


def read_markdown(source: str) -> Iterator[Fragment]:
    """Read the headings, paragraphs, list items and table rows of a page."""
    plain = mask(MARKDOWN_MARKS, mask(INLINE_CODE, mask(FENCE, source, " "), "x"), " ")
    for fragment in split_blocks(Kind.DOC, 1, plain):
        kind = Kind.DOC_HEADING if fragment.text.startswith("#") else Kind.DOC
        text = re.sub(r"^(?:#+|[-*]|\d+\.)", _blank, fragment.text)
        yield Fragment(kind, fragment.line, text)


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])
