"""The one catalogue through which goes every string that a person reads: gettext, in the reader's language.

Templates say `{% trans %}` and `_()`; Python says `_()` where a sentence depends on what happened.
`make messages` lists them all for translators. Pages are in the language that the browser asks for;
what programs read stays English, as everything does that is said outside of `read_in`.
"""

import gettext
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import resources
from typing import Final

LOCALES: Final = str(resources.files("tolsey.http").joinpath("locale"))
ENGLISH: Final = "en"
LANGUAGES: Final = (ENGLISH, "de")
"""What pages and mails are written in; the first for whoever asks for none of them."""
TRANSLATIONS: Final = {
    name: gettext.translation("tolsey", LOCALES, [name], fallback=name == ENGLISH)
    for name in LANGUAGES
}

_reader: ContextVar[str] = ContextVar("language", default=ENGLISH)


def language() -> str:
    """Tell the language of whoever reads what is written now."""
    return _reader.get()


def speak(wanted: str) -> None:
    """Write for a reader of this language until the request ends."""
    _reader.set(wanted)


@contextmanager
def read_in(wanted: str) -> Iterator[None]:
    """Write for a reader of this language meanwhile; of none that there is, in English."""
    before = _reader.set(wanted if wanted in TRANSLATIONS else ENGLISH)
    try:
        yield
    finally:
        _reader.reset(before)


def _(text: str) -> str:
    """Say a text in the reader's language; the empty one is no entry, but the catalogue's own head."""
    return TRANSLATIONS[_reader.get()].gettext(text) if text else text


def counted(one: str, many: str, count: int) -> str:
    """Say a text of a count in the reader's language."""
    return TRANSLATIONS[_reader.get()].ngettext(one, many, count)


def marked(text: str) -> str:
    """Put a text into the catalogue that is said elsewhere, by `_(...)`."""
    return text
