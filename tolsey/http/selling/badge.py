"""The badge and the page that sellers put on their own sites; both say what holds at this moment."""

import base64
import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final, Literal

from tolsey.actors.listing.verification.recurring import PRICE_CURRENCY_UNREADABLE
from tolsey.actors.listing.verification.source import DOMAIN_MISMATCH
from tolsey.actors.listing.verification.transitions import Badge
from tolsey.http.answers.market.selling import CorroborationAnswer, VerificationAnswer
from tolsey.http.layout.assets import content_of
from tolsey.http.layout.catalogue import _, marked
from tolsey.http.layout.templates import Page
from tolsey.http.layout.words import money
from tolsey.storage.records.money.currencies import EXPONENTS

Theme = Literal["light", "dark"]
Size = Literal["s", "m", "l"]

HEIGHTS: Final[dict[Size, tuple[int, int]]] = {"s": (20, 11), "m": (28, 13), "l": (40, 18)}
"""The badge's height and that of its letters."""
WIDTHS: Final = {
    character: width
    for width, characters in {
        0.29: "ijlI",
        0.32: " .,-",
        0.39: "frt",
        0.53: "csz",
        0.69: "ABCEKRSUVXYZ",
        0.77: "DGHNOQ",
        0.90: "mwMW",
    }.items()
    for character in characters
}
"""How wide letters are in Verdana and its like, as parts of their height; most are USUAL."""
USUAL: Final = 0.62

MINUTES_OF_HOUR: Final = 60

STYLE: Final = content_of("embed").decode()
STYLE_HASH: Final = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
EMBED_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors *"
)


RED_FLAGS: Final = {
    "top_customer": marked("One customer pays more than half."),
    "shared_card": marked("One card pays for several customers."),
    "revenue_spike": marked("Revenue is more than three times that of the months before."),
    "refund_rate": marked("More than a fifth was refunded or disputed."),
    "unproven_share": marked(
        "More than a fifth was paid in ways nobody can prove; none of that is counted."
    ),
    # Snapshots that were made under rv1 say it so.
    "manual_share": marked(
        "More than a fifth was not paid through a processor; none of that is counted."
    ),
    "price_rise": marked("A change of prices explains much of a recent rise."),
}
"""What a reviewer looks at, in words for a buyer; the number stays (rules/revenue#flags)."""

EXCLUSIONS: Final = {
    PRICE_CURRENCY_UNREADABLE: marked(
        "Monthly recurring revenue excludes subscriptions whose price is in another currency."
    ),
}
"""Flags that name what the numbers leave out, in words for a buyer; they need no review."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What there is to say: the badge, the verification as answered, and the time it is said at."""

    badge: Badge
    verification: VerificationAnswer
    at: datetime


@dataclass(frozen=True, slots=True)
class Words:
    """The badge in words: what is proven, how much, and how fresh that is."""

    claim: str
    amount: str = ""
    freshness: str = ""

    def __str__(self) -> str:
        """Say it in one line."""
        rest = ", ".join(filter(None, (self.amount, self.freshness)))
        return f"{self.claim}: {rest}" if rest else self.claim


def words(shown: Shown) -> Words:
    """Put the badge into words; a grey one says no amount, only when it was last proven."""
    synced = shown.verification.synced_at
    if shown.badge is Badge.NONE or synced is None:
        return Words(_("Not verified"))
    if shown.badge is Badge.GREY:
        freshness = _("last verified %(day)s") % {"day": day(synced)}
        return Words(_("Verified revenue"), freshness=freshness)
    amount = metric(shown.verification, "revenue30d")
    claim = _claim(shown.verification.flags)
    in_days = _("%(amount)s in 30 days") % {"amount": amount} if amount else ""
    return Words(claim, in_days, synced_since(shown.at - synced))


def _claim(flags: Collection[str]) -> str:
    """Say what is proven, with everything that is not; no reservation takes another's place."""
    in_review = not RED_FLAGS.keys().isdisjoint(flags)
    if DOMAIN_MISMATCH in flags:
        if in_review:
            return _("Revenue verified, in review, domain not verified")
        return _("Revenue verified, domain not verified")
    return _("Verified revenue, in review") if in_review else _("Verified revenue")


def notes_of(flags: Collection[str]) -> list[str]:
    """List in words what a reviewer looks at, and what the numbers leave out."""
    return [_(note) for flag, note in {**RED_FLAGS, **EXCLUSIONS}.items() if flag in flags]


def synced_since(span: timedelta) -> str:
    """Say how long ago the numbers were read."""
    minutes = max(0, int(span.total_seconds() // 60))
    if minutes < 1:
        return _("synced just now")
    if minutes < MINUTES_OF_HOUR:
        return _("synced %(minutes)s min ago") % {"minutes": minutes}
    return _("synced %(hours)s h ago") % {"hours": minutes // MINUTES_OF_HOUR}


def day(at: datetime) -> str:
    """Write the day of a moment."""
    return f"{at.astimezone(UTC):%Y-%m-%d}"


def metric(found: VerificationAnswer | CorroborationAnswer, name: str) -> str:
    """Write a metric as its seller shows it: as it is, as the range it lies in, or not at all."""
    between = found.ranges.get(name)
    if between is None:
        return money(getattr(found, name), found.currency)
    unit = 10 ** EXPONENTS.get(found.currency or "", 2)
    highest = f"{between.high // unit:,}"  # a range ends at whole units
    if between.low == 0:
        return _("under %(amount)s") % {"amount": f"{found.currency} {highest}"}
    lowest = f"{found.currency} {between.low // unit:,}"
    return _("%(lowest)s to %(highest)s") % {"lowest": lowest, "highest": highest}


@dataclass(frozen=True, slots=True)
class Piece:
    """A text of the badge: where it begins, and the width that it is fitted to."""

    text: str
    x: int
    width: int


@dataclass(frozen=True, kw_only=True)
class BadgePicture(Page):
    """The badge as a picture: its texts, fitted to their boxes whatever font the viewer has."""

    template = "selling/badge.svg"
    shown: Shown
    theme: Theme
    size: Size

    @property
    def is_green(self) -> bool:
        """Whether it says numbers of now."""
        return self.shown.badge is Badge.GREEN

    @cached_property
    def words(self) -> Words:
        """What it says."""
        return words(self.shown)

    @property
    def height(self) -> int:
        """Its height."""
        return HEIGHTS[self.size][0]

    @property
    def font(self) -> int:
        """The height of its letters."""
        return HEIGHTS[self.size][1]

    @property
    def margin(self) -> int:
        """What stays free at both ends of a panel."""
        return round(self.height * 0.4)

    @property
    def gap(self) -> int:
        """What stays free between two things in a panel."""
        return round(self.font * 0.5)

    @property
    def claim(self) -> Piece:
        """What is proven, behind the picture of a tick."""
        return self._piece(self.words.claim, self.margin + self.font + self.gap)

    @property
    def panel(self) -> int:
        """The width of the coloured panel, in which the claim stands."""
        return self.claim.x + self.claim.width + self.margin

    @property
    def amount(self) -> Piece:
        """How much it is."""
        return self._piece(self.words.amount, self.panel + self.margin)

    @property
    def freshness(self) -> Piece:
        """How old that is."""
        before = self.amount
        return self._piece(
            self.words.freshness, before.x + (before.width + 2 * self.gap if before.text else 0)
        )

    @property
    def width(self) -> int:
        """The width of the whole."""
        return self.freshness.x + self.freshness.width + self.margin

    def _piece(self, text: str, x: int) -> Piece:
        width = sum(WIDTHS.get(character, USUAL) for character in text)
        return Piece(text, x, round(width * self.font))


@dataclass(frozen=True, kw_only=True)
class EmbedPage(Page):
    """The page for frames on other sites: no script, nothing from outside."""

    template = "selling/embed.html"
    title: str
    address: str
    shown: Shown
    style = STYLE

    @property
    def badge(self) -> str:
        """The colour of the badge: green, grey, or none."""
        return self.shown.badge.value

    @cached_property
    def words(self) -> Words:
        """What the badge says."""
        return words(self.shown)

    @property
    def has_numbers(self) -> bool:
        """Whether there are numbers to show."""
        return self.shown.badge is not Badge.NONE and self.found.synced_at is not None

    @property
    def found(self) -> VerificationAnswer:
        """The verification as it is answered."""
        return self.shown.verification

    @property
    def ended(self) -> str | None:
        """The last day of old numbers; None for those of now."""
        if self.shown.badge is Badge.GREEN or self.found.window_end is None:
            return None
        return day(self.found.window_end)

    @property
    def facts(self) -> Sequence[tuple[str, str]]:
        """The numbers that there are, each under what it is."""
        ended = self.ended
        lately = _("30 days to %(day)s") % {"day": ended} if ended else _("Last 30 days")
        named = {
            lately: "revenue30d",
            _("Recurring, monthly"): "mrr",
            _("Annualised"): "annualised",
        }
        written = [(title, metric(self.found, name)) for title, name in named.items()]
        return [(title, amount) for title, amount in written if amount]

    @property
    def notes(self) -> Sequence[str]:
        """List in words what a reviewer looks at, and what the numbers leave out."""
        return notes_of(self.found.flags)

    @property
    def second(self) -> tuple[str, str] | None:
        """What a second source says, and how far that is from ours in percent."""
        second = self.found.corroboration
        if second is None or second.difference_percent is None:
            return None
        return metric(second, "revenue30d"), second.difference_percent
