"""The README's picture of a badge, drawn as the service draws one: `python -m tests.badge --write`."""

import sys
from datetime import UTC, datetime, timedelta
from typing import Final

from tests.rules import ROOT
from tolsey.actors.listing.verification.transitions import Badge
from tolsey.http.answers.market.selling import VerificationAnswer
from tolsey.http.layout.templates import rendered
from tolsey.http.selling.badge import BadgePicture, Shown, Theme

AT: Final = datetime(2026, 11, 22, 12, tzinfo=UTC)
PROVEN: Final = VerificationAnswer.model_construct(
    currency="USD",
    revenue30d=18_412_90,
    synced_at=AT - timedelta(minutes=4),
    ranges={},
    flags=[],
)
PICTURES: Final[dict[Theme, str]] = {"light": "badge.svg", "dark": "badge-dark.svg"}
"""The files under `docs`."""


def drawn(theme: Theme) -> str:
    """Draw the badge of a listing that was read four minutes ago."""
    return rendered(BadgePicture(shown=Shown(Badge.GREEN, PROVEN, AT), theme=theme, size="l"))


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("Say --write to write docs/badge.svg and docs/badge-dark.svg.")
    for theme, name in PICTURES.items():
        (ROOT / "docs" / name).write_text(drawn(theme))
