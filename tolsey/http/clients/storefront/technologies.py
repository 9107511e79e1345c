"""Which apps, pixels and platforms a storefront is made with, by the signatures in `signatures.json`.

A signature is ours: a host that a page loads from, a meta tag, a header, a cookie, or words in an address.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final

import orjson

from tolsey.http.clients.storefront.markup import Marks

FILE: Final = Path(__file__).with_name("signatures.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Technology:
    """Something a storefront is made with, and the mark that gave it away."""

    name: str
    category: str
    mark: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """By what one technology is known."""

    name: str
    category: str
    hosts: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    meta: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    cookies: tuple[str, ...] = ()

    def found_in(self, marks: Marks, headers: Mapping[str, str]) -> str | None:
        """Name the first of its marks that is there."""
        return next(chain(self._in_page(marks), self._in_headers(headers)), None)

    def _in_page(self, marks: Marks) -> Iterator[str]:
        for host in marks.loaded_hosts:
            if any(host == one or host.endswith(f".{one}") for one in self.hosts):
                yield f"loads from {host}"
        for path in self.paths:
            if any(path in address for address in marks.loaded):
                yield f"loads {path}"
        for one in self.meta:
            name, _, content = one.partition("=")
            if name in marks.meta and content.lower() in marks.meta[name].lower():
                yield f"meta {name}"

    def _in_headers(self, headers: Mapping[str, str]) -> Iterator[str]:
        for one in self.headers:
            name, _, content = one.partition("=")
            if name in headers and content.lower() in headers[name].lower():
                yield f"header {name}"
        cookies = headers.get("set-cookie", "")
        for one in self.cookies:
            if f"{one}=" in cookies:
                yield f"cookie {one}"


@cache
def signatures() -> tuple[Signature, ...]:
    """Read the file of signatures once."""
    listed = orjson.loads(FILE.read_bytes())
    return tuple(
        Signature(
            name=one["name"],
            category=one["category"],
            **{
                kind: tuple(one[kind])
                for kind in ("hosts", "paths", "meta", "headers", "cookies")
                if kind in one
            },
        )
        for one in listed
    )


def detect(marks: Marks, headers: Mapping[str, str]) -> list[Technology]:
    """List what a page is made with."""
    found = ((one, one.found_in(marks, headers)) for one in signatures())
    return [
        Technology(name=one.name, category=one.category, mark=mark)
        for one, mark in found
        if mark is not None
    ]


def named(technologies: Iterable[Technology], category: str) -> list[str]:
    """Name those of one category."""
    return [one.name for one in technologies if one.category == category]
