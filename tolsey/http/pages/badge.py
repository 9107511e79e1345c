"""The badge and the page that sellers put on their own sites; both say what holds at this moment."""

import base64
import hashlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Any, Final, Literal

from tolsey.actors.listing.source import DOMAIN_MISMATCH
from tolsey.actors.listing.verification import Badge
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

GREEN, GREY = "#1a7f4b", "#6b7280"
TICK, CLOCK = "M3 8.5l3.5 3.5L13 4.5", "M8 1.5a6.5 6.5 0 1 1-.01 0M8 4.5V8l2.5 2"
PAINT: Final[dict[Theme, tuple[str, str, str, str]]] = {
    "light": ("#ffffff", "#d1d5db", "#111827", "#4b5563"),
    "dark": ("#111827", "#374151", "#f9fafb", "#9ca3af"),
}
"""Background, edge, ink, and ink of what matters less."""

STYLE = (
    "body{margin:0;font:14px/1.45 system-ui,sans-serif;color:#111827;overflow-wrap:anywhere}"
    "main{background:#fff;border:1px solid #d1d5db;border-radius:12px;padding:16px 20px}"
    # A title is a stranger's: it gets two lines, however long or high its letters are.
    "h1{font-size:16px;line-height:1.4;font-weight:600;margin:0 0 8px;max-height:2.8em;"
    "overflow:hidden;display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:2}"
    "p{margin:0}"
    ".badge{display:inline-block;font-size:12px;font-weight:600;line-height:16px;"
    "border-radius:12px;padding:4px 12px 4px 8px}"
    "svg{width:12px;height:12px;margin-right:6px;vertical-align:-1px;fill:none;"
    "stroke:currentColor;stroke-width:2.2;stroke-linecap:round;stroke-linejoin:round}"
    ".green{color:#14653b;background:#e3f4ea}.grey,.none{color:#4b5563;background:#eef0f3}"
    ".none{padding-left:12px}"
    "dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(120px,1fr));gap:12px 16px;margin:14px 0 0}"
    "div:first-child{grid-column:1/-1}dt{font-size:12px;color:#4b5563}"
    "dd{margin:0;font-weight:600;font-variant-numeric:tabular-nums}"
    "div:first-child dd{font-size:clamp(18px,7.5vw,26px);line-height:1.25}"
    ".note{margin-top:8px;font-size:12px;color:#4b5563}"
    "footer{display:flex;flex-wrap:wrap;justify-content:space-between;gap:2px 16px;"
    "margin-top:14px;padding-top:10px;border-top:1px solid #e5e7eb;font-size:12px;color:#4b5563}"
    "a{color:#1a56a8}"
)
STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
EMBED_POLICY = (
    f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors *"
)


RED_FLAGS: Final = {
    "top_customer": "One customer pays more than half.",
    "shared_card": "One card pays for several customers.",
    "revenue_spike": "Revenue is more than three times that of the months before.",
    "refund_rate": "More than a fifth was refunded or disputed.",
    "unproven_share": "More than a fifth was paid in ways nobody can prove; none of that is counted.",
    # Snapshots that were made under rv1 say it so.
    "manual_share": "More than a fifth was not paid through a processor; none of that is counted.",
    "price_rise": "A change of prices explains much of a recent rise.",
}
"""What a reviewer looks at, in words for a buyer; the number stays (product page, section 1.4)."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What there is to say: the badge, the verification as answered, and the time it is said at."""

    badge: Badge
    verification: dict[str, Any]
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
    synced_at = shown.verification["syncedAt"]
    synced = datetime.fromisoformat(synced_at) if synced_at else None
    if shown.badge is Badge.NONE or synced is None:
        return Words("Not verified")
    if shown.badge is Badge.GREY:
        return Words("Verified revenue", freshness=f"last verified {day(synced)}")
    amount = money(shown.verification["revenue30d"], shown.verification["currency"])
    claim = _claim(shown.verification["flags"])
    return Words(claim, f"{amount} in 30 days", f"synced {age(shown.at - synced)}")


def _claim(flags: Collection[str]) -> str:
    """Say what is proven, with everything that is not; no reservation takes another's place."""
    review = ", in review" if RED_FLAGS.keys() & flags else ""
    if DOMAIN_MISMATCH in flags:
        return f"Revenue verified{review}, domain not verified"
    return f"Verified revenue{review}"


def age(since: timedelta) -> str:
    """Say how long ago something was."""
    minutes = max(0, int(since.total_seconds() // 60))
    if minutes < 1:
        return "just now"
    return f"{minutes} min ago" if minutes < 60 else f"{minutes // 60} h ago"  # noqa: PLR2004 - minutes of an hour


def day(at: datetime) -> str:
    """Write the day of a moment."""
    return f"{at.astimezone(UTC):%Y-%m-%d}"


def money(minor: int, currency: str) -> str:
    """Write an amount of minor units for people to read."""
    digits = EXPONENTS.get(currency, 2)
    whole, rest = divmod(abs(minor), 10**digits)
    sign = "-" if minor < 0 else ""
    return f"{currency} {sign}{whole:,}" + (f".{rest:0{digits}d}" if digits else "")


def svg(shown: Shown, theme: Theme, size: Size) -> str:
    """Draw the badge; text is escaped, and fitted to its box whatever font the viewer has."""
    height, font = HEIGHTS[size]
    said = words(shown)
    margin, gap, corner = round(height * 0.4), round(font * 0.5), round(height * 0.2)
    background, edge, ink, quiet = PAINT[theme]
    is_green = shown.badge is Badge.GREEN
    label = escape(str(said))
    claim_at = margin + font + gap
    panel = claim_at + _width(said.claim, font) + margin
    amount_at = panel + margin
    freshness_at = amount_at + (_width(said.amount, font) + 2 * gap if said.amount else 0)
    total = freshness_at + _width(said.freshness, font) + margin
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="{height}"'
        f' viewBox="0 0 {total} {height}" role="img" aria-label="{label}"><title>{label}</title>'
        f'<rect x=".5" y=".5" width="{total - 1}" height="{height - 1}" rx="{corner - 0.5}"'
        f' fill="{background}" stroke="{edge}"/>'
        f'<path d="M{corner} 0H{panel}V{height}H{corner}a{corner} {corner} 0 0 1-{corner}-{corner}'
        f'V{corner}a{corner} {corner} 0 0 1 {corner}-{corner}z" fill="{GREEN if is_green else GREY}"/>'
        f'<path d="{TICK if is_green else CLOCK}" fill="none" stroke="#fff" stroke-width="2"'
        ' stroke-linecap="round" stroke-linejoin="round"'
        f' transform="translate({margin} {(height - font) / 2}) scale({font / 16})"/>'
        f'<g font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="{font}">'
        f"{_text(said.claim, claim_at, size, '#ffffff')}{_text(said.amount, amount_at, size, ink)}"
        f"{_text(said.freshness, freshness_at, size, quiet)}</g></svg>"
    )


def _width(text: str, font: int) -> int:
    return round(sum(WIDTHS.get(character, USUAL) for character in text) * font)


def _text(text: str, x: int, size: Size, fill: str) -> str:
    height, font = HEIGHTS[size]
    baseline = height / 2 + font * 0.36  # capitals are 0.72 high
    return (
        f'<text x="{x}" y="{baseline:g}" fill="{fill}" textLength="{_width(text, font)}">'
        f"{escape(text)}</text>"
        if text
        else ""
    )


def embed(title: str, address: str, shown: Shown) -> str:
    """Write the page for frames on other sites: no script, nothing from outside."""
    said = words(shown)
    icons = {Badge.GREEN: TICK, Badge.GREY: CLOCK}
    icon = icons.get(shown.badge)
    drawn = f'<svg viewBox="0 0 16 16" aria-hidden="true"><path d="{icon}"/></svg>' if icon else ""
    figures = "".join(
        f"<div><dt>{escape(label)}</dt><dd>{escape(amount)}</dd></div>"
        for label, amount in _figures(shown)
    )
    notes = "".join(f'<p class="note">{note}</p>' for note in _notes(shown))
    fresh = said.freshness.capitalize() or "No proven numbers at the moment"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>"
        f"<h1><bdi>{escape(title)}</bdi></h1>"
        f'<p class="badge {shown.badge.value}">{drawn}{escape(said.claim)}</p>'
        f"{f'<dl>{figures}</dl>' if figures else ''}{notes}"
        f'<footer><span>{escape(fresh)}</span><a href="{escape(address)}" target="_blank"'
        ' rel="noopener noreferrer">Check it yourself</a></footer></main></body></html>'
    )


def _figures(shown: Shown) -> Iterator[tuple[str, str]]:
    """List what the page shows; old numbers say which days they are of."""
    found = shown.verification
    if shown.badge is Badge.NONE or found["syncedAt"] is None:
        return
    ended = datetime.fromisoformat(found["windowEnd"])
    days = "Last 30 days" if shown.badge is Badge.GREEN else f"30 days to {day(ended)}"
    names = {"revenue30d": days, "mrr": "Recurring, monthly", "annualised": "Annualised"}
    for name, label in names.items():
        yield label, money(found[name], found["currency"])


def _notes(shown: Shown) -> Iterator[str]:
    """List in words what a reviewer looks at, and what a second source says."""
    if shown.badge is Badge.NONE:
        return
    yield f"Measured by definition {shown.verification['definition']}."
    flags = shown.verification["flags"]
    yield from (note for flag, note in RED_FLAGS.items() if flag in flags)
    second = shown.verification["corroboration"]
    if second is not None and second["differencePercent"] is not None:
        amount = money(second["revenue30d"], second["currency"])
        yield f"A second source says {amount} ({second['differencePercent']} % apart)."
