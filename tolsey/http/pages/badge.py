"""The badge and the page that sellers put on their own sites; both say what holds at this moment."""

import base64
import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Any, Final, Literal

from tolsey.actors.listing.revenue import EXPONENTS
from tolsey.actors.listing.source import DOMAIN_MISMATCH
from tolsey.actors.listing.verification import Badge

Theme = Literal["light", "dark"]
Size = Literal["s", "m", "l"]

HEIGHTS: Final[dict[Size, int]] = {"s": 20, "m": 28, "l": 40}
WIDE: Final = 0.62
"""A character of the badge's font is about this many times as wide as it is high."""
GREEN, GREY = "#1a7f4b", "#6b7280"
INK: Final[dict[Theme, tuple[str, str]]] = {
    "light": ("#ffffff", "#111827"),
    "dark": ("#111827", "#f3f4f6"),
}

STYLE = (
    "body{margin:0;font:14px/1.5 system-ui,sans-serif;color:#111827;background:#fff}"
    "main{border:1px solid #d1d5db;border-radius:8px;padding:16px}"
    "h1{font-size:16px;margin:0 0 4px}dl{display:grid;grid-template-columns:auto 1fr;gap:2px 16px}"
    "dt{color:#6b7280}dd{margin:0}"
    ".green{color:#1a7f4b}.grey,.none{color:#6b7280}"
)
STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
EMBED_POLICY = (
    f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors *"
)


@dataclass(frozen=True, slots=True)
class Shown:
    """What there is to say: the badge, the verification as answered, and the time it is said at."""

    badge: Badge
    verification: dict[str, Any]
    at: datetime


def words(shown: Shown) -> tuple[str, str]:
    """Say the badge in two parts: what is proven, and how fresh that is."""
    synced_at = shown.verification["syncedAt"]
    synced = datetime.fromisoformat(synced_at) if synced_at else None
    if shown.badge is Badge.NONE or synced is None:
        return "Not verified", ""
    if shown.badge is Badge.GREY:
        return "Verified revenue", f"last verified {synced.astimezone(UTC):%Y-%m-%d}"
    claim = "Verified revenue"
    if DOMAIN_MISMATCH in shown.verification["flags"]:
        claim = "Revenue verified, domain not verified"
    amount = money(shown.verification["revenue30d"], shown.verification["currency"])
    return claim, f"{amount} in 30 days, synced {age(shown.at - synced)}"


def age(since: timedelta) -> str:
    """Say how long ago something was."""
    minutes = max(0, int(since.total_seconds() // 60))
    if minutes < 1:
        return "just now"
    return f"{minutes} min ago" if minutes < 60 else f"{minutes // 60} h ago"  # noqa: PLR2004 - minutes of an hour


def money(minor: int, currency: str) -> str:
    """Write an amount of minor units for people to read."""
    digits = EXPONENTS.get(currency, 2)
    whole, rest = divmod(minor, 10**digits)
    return f"{currency} {whole:,}.{rest:0{digits}d}" if digits else f"{currency} {whole:,}"


def svg(shown: Shown, theme: Theme, size: Size) -> str:
    """Draw the badge; text is escaped, and fitted to its box whatever font the viewer has."""
    height = HEIGHTS[size]
    font = round(height * 0.5)
    left, right = words(shown)
    widths = [round(len(part) * font * WIDE) + height for part in (left, right)]
    background, ink = INK[theme]
    colour = GREEN if shown.badge is Badge.GREEN else GREY
    baseline = round(height * 0.68)
    total = sum(widths)
    label = escape(f"{left}: {right}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="{height}"'
        f' viewBox="0 0 {total} {height}" role="img" aria-label="{label}"><title>{label}</title>'
        f'<rect width="{total}" height="{height}" rx="4" fill="{background}" stroke="{colour}"/>'
        f'<rect width="{widths[0]}" height="{height}" rx="4" fill="{colour}"/>'
        f'<g font-family="Verdana,DejaVu Sans,sans-serif" font-size="{font}">'
        f"{_text(left, height // 2, baseline, widths[0] - height, '#ffffff')}"
        f"{_text(right, widths[0] + height // 2, baseline, widths[1] - height, ink)}"
        "</g></svg>"
    )


def _text(text: str, x: int, y: int, width: int, fill: str) -> str:
    return (
        f'<text x="{x}" y="{y}" fill="{fill}" textLength="{width}"'
        f' lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'
    )


def embed(title: str, address: str, shown: Shown) -> str:
    """Write the page for frames on other sites: no script, nothing from outside."""
    claim, freshness = words(shown)
    rows = ""
    if shown.badge is not Badge.NONE:
        currency = shown.verification["currency"]
        names = {
            "revenue30d": "Last 30 days",
            "mrr": "Recurring, monthly",
            "annualised": "Annualised",
        }
        rows = "".join(
            f"<dt>{label}</dt><dd>{escape(money(shown.verification[name], currency))}</dd>"
            for name, label in names.items()
        )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>"
        f'<h1>{escape(title)}</h1><p class="{shown.badge.value}">{escape(claim)}'
        f"{': ' if freshness else ''}{escape(freshness)}</p><dl>{rows}</dl>"
        f'<a href="{escape(address)}" target="_blank" rel="noopener noreferrer">Check it</a>'
        "</main></body></html>"
    )
