"""What a client is called: a name that people can see, and that changes nothing beside it."""

import unicodedata
from typing import Final

from tolsey.http.oauth.redirects import place_of

HIDING: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Controls, formats (what turns a line's direction is one), halves of characters, and ends of lines."""
SHOWING: Final = frozenset("LNPS")
"""Letters, numbers, punctuation and symbols."""
BLANK: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Those of them that are drawn as nothing."""


def is_shown(name: str) -> bool:
    """Tell whether a name shows something and hides nothing."""
    kinds = {character: unicodedata.category(character) for character in name}
    return HIDING.isdisjoint(kinds.values()) and any(
        kind[0] in SHOWING and character not in BLANK for character, kind in kinds.items()
    )


def called(name: str, redirect_uri: str) -> str:
    """Say what to call a client: by the place its answers go to, if its name cannot be shown."""
    return name if is_shown(name) else place_of(redirect_uri)
