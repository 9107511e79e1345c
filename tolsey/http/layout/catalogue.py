"""The one catalogue through which goes every string that a person reads: gettext, English for now.

Templates say `{% trans %}` and `_()`; Python says `_()` where a sentence depends on what happened.
`make messages` lists them all for translators.
"""

import gettext
from importlib import resources
from typing import Final

TRANSLATIONS: Final = gettext.translation(
    "tolsey", str(resources.files("tolsey.http").joinpath("locale")), ["en"], fallback=True
)


def _(text: str) -> str:
    """Say a text in the reader's language; the empty one is no entry, but the catalogue's own head."""
    return TRANSLATIONS.gettext(text) if text else text


def counted(one: str, many: str, count: int) -> str:
    """Say a text of a count in the reader's language."""
    return TRANSLATIONS.ngettext(one, many, count)


def marked(text: str) -> str:
    """Put a text into the catalogue that is said elsewhere, by `_(...)`."""
    return text
