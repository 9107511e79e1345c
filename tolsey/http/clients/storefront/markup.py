"""The marks in a page of HTML, in one pass and linear time, whatever the markup is.

No tree is built: broken or hostile markup costs no more than its length, and no more than a bound.
"""

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from tolsey.actors.bodies import clean

READ_BYTES: Final = 1 << 20
MOST_TAGS: Final = 20_000
TAG_CHARACTERS: Final = 2_048
MOST_LINKS: Final = 2_000
LD_CHARACTERS: Final = 64 * 1024
TEXT_CHARACTERS: Final = 500
WANTED: Final = frozenset({"html", "title", "meta", "link", "script", "a", "img", "iframe", "h1"})
NAME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9]{0,9}")
ATTRIBUTE: Final = re.compile(
    r"""(?:^|\s)([a-zA-Z:_-]{1,40})\s{0,3}=\s{0,3}(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))"""
)
THEME: Final = "Shopify.theme"
STRUCTURED: Final = "application/ld+json"
MOST_STRUCTURED: Final = 50


@dataclass(slots=True)
class Marks:
    """What a page says of its shop: addresses it loads, what it links to, what its head states."""

    title: str = ""
    language: str = ""
    canonical: str = ""
    headings: int = 0
    meta: dict[str, str] = field(default_factory=dict)
    loaded: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    structured: list[Mapping[str, Any]] = field(default_factory=list)
    theme: Mapping[str, Any] = field(default_factory=dict)

    @property
    def loaded_hosts(self) -> frozenset[str]:
        """The hosts that scripts, pictures, frames and styles come from."""
        return frozenset(filter(None, map(_host, self.loaded)))


def read_marks(body: bytes) -> Marks:
    """Read a page."""
    text = body[:READ_BYTES].decode("utf-8", "replace")
    marks = Marks(theme=_theme(text))
    for name, attributes, following in _tags(text):
        _note(marks, name, attributes, following)
    return marks


def _tags(text: str) -> Iterator[tuple[str, Mapping[str, str], str]]:
    """Give the wanted tags: name, attributes, and the text that follows up to the next tag."""
    at, tags = 0, 0
    while tags < MOST_TAGS and (at := text.find("<", at) + 1) > 0:
        tags += 1
        found = NAME.match(text, at)
        if found is None or (name := found[0].lower()) not in WANTED:
            continue
        # A tag longer than that is none that we look for; where it ends does not matter then.
        end = text.find(">", at, at + TAG_CHARACTERS)
        if end < 0:
            continue
        attributes = {
            one[0].lower(): html.unescape(one[1] or one[2] or one[3])
            for one in ATTRIBUTE.findall(text[found.end() : end])
        }
        following = ""
        if name == "title" or attributes.get("type", "").lower() == STRUCTURED:
            stop = text.find("</", end, end + LD_CHARACTERS)
            following = text[end + 1 : stop] if stop > 0 else ""
        yield name, attributes, following
        at = end


def _note(marks: Marks, name: str, attributes: Mapping[str, str], following: str) -> None:
    if name == "a":
        _append(marks.links, attributes.get("href"))
    elif name in {"img", "iframe"}:
        _append(marks.loaded, attributes.get("src"))
    elif name == "script":
        _append(marks.loaded, attributes.get("src"))
        if following and len(marks.structured) < MOST_STRUCTURED:
            marks.structured += _structured(following)
    elif name == "h1":
        marks.headings += 1
    else:
        _note_head(marks, name, attributes, following)


def _note_head(marks: Marks, name: str, attributes: Mapping[str, str], following: str) -> None:
    if name == "title" and not marks.title:
        marks.title = clean(html.unescape(following).strip(), TEXT_CHARACTERS)
    elif name == "html" and not marks.language:
        marks.language = clean(attributes.get("lang", ""), 16)
    elif name == "meta":
        key = attributes.get("name") or attributes.get("property") or ""
        if key and len(marks.meta) < MOST_LINKS:
            content = clean(attributes.get("content", ""), TEXT_CHARACTERS)
            marks.meta.setdefault(key.lower()[:80], content)
    elif name == "link":
        if attributes.get("rel", "").lower() == "canonical" and not marks.canonical:
            marks.canonical = clean(attributes.get("href", ""), TEXT_CHARACTERS)
        _append(marks.loaded, attributes.get("href"))


def _append(addresses: list[str], address: str | None) -> None:
    if address and len(addresses) < MOST_LINKS:
        addresses.append(clean(address, TEXT_CHARACTERS))


def _structured(text: str) -> list[Mapping[str, Any]]:
    """Read what a page states of its things (JSON-LD); what is broken states nothing."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return []
    several = found if isinstance(found, list) else [found]
    return [one for one in several[:MOST_STRUCTURED] if isinstance(one, dict)]


def _theme(text: str) -> Mapping[str, Any]:
    """Read `Shopify.theme = {…}`, which every page of that platform has."""
    at = text.find(THEME)
    brace = text.find("{", at, at + 40) if at >= 0 else -1
    if brace < 0:
        return {}
    # The object is flat but for its `style`: the first end of a statement is its end.
    end = text.find("};", brace, brace + TAG_CHARACTERS)
    try:
        found = orjson.loads(text[brace : end + 1] if end > 0 else "")
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _host(address: str) -> str:
    """Name the host of an address; empty for one of the page's own site, and for what is none."""
    if "//" not in address:
        return ""
    try:
        return (urlsplit(address).hostname or "").lower()
    except ValueError:
        return ""
