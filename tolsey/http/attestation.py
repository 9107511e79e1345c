"""What the service says of a listing's revenue, and its signature under it.

Anyone can check it offline. Take the public answer, move `signature` out of it, and build

    {"keyId": ..., "listing": ..., "signedAt": ..., "verification": <the rest of the answer>}

with the first three from `signature`. Write that as canonical JSON (RFC 8785: sorted keys, no
spaces, UTF-8), and check the Ed25519 signature `signature.value` (base64url without padding) over
those bytes with the key of that id in `/.well-known/verification-keys.json` (a JWK set, RFC 8037).
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

from tolsey.actors.listing import source
from tolsey.actors.listing.revenue import DEFINITION
from tolsey.actors.listing.verification import Badge, badge_of, settle
from tolsey.http.views import timestamp
from tolsey.storage.listings import ListingView
from tolsey.storage.records.revenue import RevenueSnapshot
from tolsey.storage.sealed import Vault, base64url

SOURCE = "commerce"


def verification_view(view: ListingView, now: datetime, *, owner: bool = False) -> dict[str, Any]:
    """Show the machine and, to the owner or under a badge, the numbers in minor units."""
    record = settle(view.verification, now)
    is_shown = owner or badge_of(view.verification, now) is not Badge.NONE
    snapshot = view.snapshot if is_shown else None
    currency, figures = main_figures(snapshot)
    return {
        "state": record.state.value,
        "source": SOURCE if record.shop_domain else None,
        "definition": snapshot.definition if snapshot else DEFINITION,
        "currency": currency,
        "mrr": figures.get("mrr"),
        "revenue30d": figures.get("revenue30d"),
        "annualised": figures.get("annualised"),
        "windowStart": timestamp(snapshot.window_start) if snapshot else None,
        "windowEnd": timestamp(snapshot.window_end) if snapshot else None,
        "syncedAt": timestamp(snapshot.window_end) if snapshot else None,
        "flags": flags(view, snapshot),
    }


def main_figures(snapshot: RevenueSnapshot | None) -> tuple[str | None, dict[str, int]]:
    """Choose the currency to show: the shop's own, else the one with the most orders."""
    if snapshot is None:
        return None, {}
    figures: dict[str, dict[str, int]] = orjson.loads(snapshot.figures)
    if not figures:
        return snapshot.shop_currency, {"mrr": 0, "revenue30d": 0, "annualised": 0}
    busiest = max(sorted(figures), key=lambda name: figures[name]["orders"])
    currency = snapshot.shop_currency if snapshot.shop_currency in figures else busiest
    return currency, figures[currency]


def flags(view: ListingView, snapshot: RevenueSnapshot | None) -> list[str]:
    """List what a buyer should know beside the numbers; the domain is compared as claimed now."""
    if snapshot is None:
        return []
    record = view.verification
    return source.flags_of(
        orjson.loads(snapshot.flags),
        view.listing.domain,
        record.primary_domain,
        record.shop_domain,
    )


def canonical(document: Mapping[str, Any]) -> bytes:
    """Write text, integers, null, lists and objects as canonical JSON (RFC 8785)."""
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def signed(view: ListingView, vault: Vault, now: datetime) -> dict[str, Any]:
    """Show the verification with a signature that anyone can check offline."""
    verification = verification_view(view, now)
    head = {
        "keyId": vault.key_ids[0],
        "listing": view.listing.slug,
        "signedAt": timestamp(now),
    }
    value = vault.signing_key(vault.key_ids[0]).sign(
        canonical({**head, "verification": verification})
    )
    return {
        **verification,
        "signature": {"algorithm": "Ed25519", **head, "value": base64url(value)},
    }


def public_keys(vault: Vault) -> dict[str, Any]:
    """List the keys that signatures may be made with, as a JWK set."""
    return {
        "keys": [
            {
                "kty": "OKP",
                "crv": "Ed25519",
                "use": "sig",
                "alg": "EdDSA",
                "kid": key_id,
                "x": base64url(vault.signing_key(key_id).public_key().public_bytes_raw()),
            }
            for key_id in vault.key_ids
        ],
        "signedDocument": (
            "RFC 8785 JSON of {keyId, listing, signedAt, verification}: the first three as in the "
            "answer's `signature`, `verification` being the answer without it"
        ),
    }
