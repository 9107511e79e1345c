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

_ = TRANSLATIONS.gettext


def marked(text: str) -> str:
    """Put a text into the catalogue that is said elsewhere, by `_(...)`."""
    return text
