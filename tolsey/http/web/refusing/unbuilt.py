"""What is promised and this version has not built (rules/requests#not-built-yet): a client learns that, instead of a 404."""

import re
from typing import Final

PATHS: Final = (r"/api/admin/actors/[^/]+/[^/]+/at",)
"""A path that is built is answered before anyone looks here."""
PATTERN: Final = re.compile("|".join(PATHS))

SENTENCE: Final = "This version does not have this yet."


def is_named(path: str) -> bool:
    """Tell whether a path is promised, for one that nobody serves."""
    return PATTERN.fullmatch(path) is not None
