"""What the service says of a listing's revenue, and its signature under it.

Anyone can check it offline. Take the public answer, move `signature` out of it, and build

    {"keyId": ..., "listing": ..., "signedAt": ..., "verification": <the rest of the answer>}

with the first three from `signature`. Write that as canonical JSON (RFC 8785: sorted keys, no
spaces, UTF-8), and check the Ed25519 signature `signature.value` (base64url without padding) over
those bytes with the key of that id in `/.well-known/verification-keys.json` (a JWK set, RFC 8037).

Metrics that the seller does not show as they are stand behind `commitment`, the SHA-256 (base64url)
of their opening as canonical JSON. Who is given the opening can tell that it is of the same sync.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final, TypeVar

import orjson

from tolsey.actors.listing import ranges
from tolsey.actors.listing.evidence import canonical
from tolsey.actors.listing.verification import source
from tolsey.actors.listing.verification.transitions import (
    Badge,
    badge_of,
    listing_badge,
    primary,
    settle,
)
from tolsey.http.answers.base import timestamp
from tolsey.http.answers.market.selling import (
    AttestedAnswer,
    CorroborationAnswer,
    FiguresAnswer,
    KeyAnswer,
    KeysAnswer,
    OpeningAnswer,
    OtherCurrencyAnswer,
    RangeAnswer,
    SignatureAnswer,
    SignedVerificationAnswer,
    VerificationAnswer,
)
from tolsey.storage.records.selling.listing import COMMERCE, VerificationState, Visibility
from tolsey.storage.records.selling.revenue import DEFINITION, RevenueSnapshot
from tolsey.storage.sealing.sealed import Vault, base64url
from tolsey.storage.selling.listings import ListingView, ProofView

Figures = TypeVar("Figures", bound=FiguresAnswer)

OPENED: Final = (*ranges.METRICS, "definition", "window_end", "currency")
"""What an opening says as the seller reads it."""


def primary_proof(view: ListingView, now: datetime) -> ProofView:
    """Choose the source whose numbers are shown; two are never added (rules/revenue#two-sources)."""
    chosen = primary([proof.verification for proof in view.proofs], now)
    return next(proof for proof in view.proofs if proof.verification is chosen)


def badge(view: ListingView, now: datetime) -> Badge:
    """Say which badge a listing has, by all its sources."""
    return listing_badge([proof.verification for proof in view.proofs], now)


def verification_of(view: ListingView, now: datetime, *, owner: bool = False) -> VerificationAnswer:
    """Show the machine and, to the owner or under a badge, the numbers in minor units.

    All but the owner are shown them as the owner chose.
    """
    visibility = ranges.shown_as(view.listing.visibility)
    proof = primary_proof(view, now)
    record = settle(proof.verification, now)
    is_shown = owner or badge(view, now) is not Badge.NONE
    snapshot = proof.snapshot if is_shown else None
    currency, figures = main_figures(snapshot)
    found = VerificationAnswer(
        state=record.state.value,
        visibility=visibility,
        source=record.provider if record.shop_domain else None,
        definition=snapshot.definition if snapshot else DEFINITION,
        currency=currency,
        mrr=figures.get("mrr"),
        arr=12 * figures["mrr"] if figures else None,
        mrr_at_risk=figures.get("mrr_at_risk"),
        subscribers=figures.get("subscribers"),
        revenue30d=figures.get("revenue30d"),
        annualised=figures.get("annualised"),
        refunds_of_earlier_orders30d=figures.get("refunds_of_earlier_orders30d"),
        tax_included=_tax_included(snapshot),
        metered_items=_metered(snapshot),
        other_currencies=_others(snapshot, currency),
        window_start=snapshot.window_start if snapshot else None,
        window_end=snapshot.window_end if snapshot else None,
        synced_at=snapshot.window_end if snapshot else None,
        flags=flags(view, proof, snapshot),
        corroboration=_corroboration(view, proof, now, owner=owner) if is_shown else None,
    )
    return found if owner else _public(found)


def _public(found: VerificationAnswer) -> VerificationAnswer:
    """Leave of a verification what its seller shows, and of what is told beside its metrics too."""
    visibility, second = found.visibility, found.corroboration
    others = [disclosed(each, visibility) for each in found.other_currencies]
    update: dict[str, Any] = {
        "other_currencies": others,
        "corroboration": disclosed(second, visibility) if second else None,
    }
    if visibility["mrr"] is not Visibility.EXACT:
        update["mrr_at_risk"] = None
    if visibility["revenue30d"] is not Visibility.EXACT:
        update["refunds_of_earlier_orders30d"] = None
    return disclosed(found, visibility).model_copy(update=update)


def disclosed(answer: Figures, visibility: Mapping[str, Visibility]) -> Figures:
    """Leave of metrics what their seller shows: some as they are, some as ranges, some not at all."""
    currency: str | None = getattr(answer, "currency")  # noqa: B009 - every answer with metrics has one
    changed: dict[str, Any] = {}
    shown_ranges: dict[str, RangeAnswer] = {}
    for name in (*ranges.METRICS, *ranges.DERIVED):
        metric, value = ranges.DERIVED.get(name, name), getattr(answer, name, None)
        if value is None or visibility[metric] is Visibility.EXACT:
            continue
        changed[name] = None
        if visibility[metric] is Visibility.BUCKET:
            factor = ranges.MONTHS if name in ranges.DERIVED else 1
            found = ranges.range_of(metric, value // factor, currency).times(factor)
            shown_ranges[name] = RangeAnswer(low=found.low, high=found.high)
    return answer.model_copy(update={**changed, "ranges": shown_ranges})


def _tax_included(snapshot: RevenueSnapshot | None) -> str | None:
    """Say whether tax is in the numbers: a shop tells it apart, a payment does not."""
    if snapshot is None:
        return None
    return "no" if snapshot.source == COMMERCE else "unknown"


def _metered(snapshot: RevenueSnapshot | None) -> int | None:
    """Count the items that are billed by use, which no recurring number holds (rules/revenue#subscriptions)."""
    if snapshot is None or snapshot.source == COMMERCE:
        return None
    skipped: dict[str, int] = orjson.loads(snapshot.skipped)
    return skipped.get("metered", 0)


def _others(snapshot: RevenueSnapshot | None, currency: str | None) -> list[OtherCurrencyAnswer]:
    """List the other currencies as they are: none is converted without a rate (rules/revenue#currencies)."""
    if snapshot is None:
        return []
    figures: dict[str, dict[str, int]] = orjson.loads(snapshot.figures)
    return [
        OtherCurrencyAnswer(
            currency=name,
            mrr=each["mrr"],
            revenue30d=each["revenue30d"],
            annualised=each["annualised"],
        )
        for name, each in sorted(figures.items())
        if name != currency
    ]


def _corroboration(
    view: ListingView, chosen: ProofView, now: datetime, *, owner: bool
) -> CorroborationAnswer | None:
    """Show the other source beside the first, with the difference in percent of the first."""
    other = next(proof for proof in view.proofs if proof is not chosen)
    record = settle(other.verification, now)
    if record.state in (VerificationState.NONE, VerificationState.REVOKED):
        return None
    is_shown = owner or badge_of(record, now) is not Badge.NONE
    snapshot = other.snapshot if is_shown else None
    currency, first = main_figures(chosen.snapshot)
    second = _figures_in(snapshot, currency)
    return CorroborationAnswer(
        source=record.provider,
        state=record.state.value,
        currency=currency if second else None,
        mrr=second.get("mrr"),
        revenue30d=second.get("revenue30d"),
        synced_at=snapshot.window_end if snapshot else None,
        difference_percent=difference(first.get("revenue30d"), second.get("revenue30d")),
        flags=flags(view, other, snapshot),
    )


def _figures_in(snapshot: RevenueSnapshot | None, currency: str | None) -> dict[str, int]:
    figures: dict[str, dict[str, int]] = orjson.loads(snapshot.figures) if snapshot else {}
    return figures.get(currency or "", {})


def difference(first: int | None, second: int | None) -> str | None:
    """Say by how much the second is more than the first, in percent with one decimal, as text."""
    if not first or second is None:
        return None
    percent = Decimal(100) * (second - first) / first
    return str(percent.quantize(Decimal("0.1"), rounding=ROUND_HALF_UP))


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


def flags(view: ListingView, proof: ProofView, snapshot: RevenueSnapshot | None) -> list[str]:
    """List what a buyer should know beside the numbers; the domain is compared as claimed now."""
    if snapshot is None:
        return []
    record = proof.verification
    return source.flags_of(
        orjson.loads(snapshot.flags),
        view.listing.domain,
        record.primary_domain,
        record.shop_domain,
    )


def signed(view: ListingView, vault: Vault, now: datetime) -> SignedVerificationAnswer:
    """Show the verification with a signature that anyone can check offline."""
    opening = opening_of(view, vault, now)
    attested = AttestedAnswer(
        **dict(verification_of(view, now)), commitment=commitment(opening) if opening else None
    )
    head = {
        "keyId": vault.key_ids[0],
        "listing": view.listing.slug,
        "signedAt": timestamp(now),
    }
    value = vault.signing_key(vault.key_ids[0]).sign(
        canonical({**head, "verification": attested.model_dump(mode="json")})
    )
    signature = SignatureAnswer(
        algorithm="Ed25519",
        key_id=vault.key_ids[0],
        listing=view.listing.slug,
        signed_at=now,
        value=base64url(value),
    )
    return SignedVerificationAnswer(**dict(attested), signature=signature)


def opening_of(view: ListingView, vault: Vault, now: datetime) -> OpeningAnswer | None:
    """Give the metrics that a signed verification is bound to; None where it shows none at all.

    The salt keeps them from being guessed: it is the sync's own, and only the ring's keys give it.
    """
    if verification_of(view, now).synced_at is None:
        return None
    found = verification_of(view, now, owner=True)
    proof = primary_proof(view, now)
    moment = timestamp(found.window_end) if found.window_end else None
    purpose = f"opening|{view.listing.id}|{proof.verification.provider}|{moment}"
    return OpeningAnswer(
        listing=view.listing.slug,
        source=proof.verification.provider,
        salt=base64url(vault.secret_for(vault.key_ids[0], purpose)),
        **{name: getattr(found, name) for name in OPENED},
    )


def commitment(opening: OpeningAnswer) -> str:
    """Bind a document to an opening that it does not show."""
    return base64url(hashlib.sha256(canonical(opening.model_dump(mode="json"))).digest())


def public_keys(vault: Vault) -> KeysAnswer:
    """List the keys that signatures may be made with, as a JWK set."""
    return KeysAnswer(
        keys=[
            KeyAnswer(
                kty="OKP",
                crv="Ed25519",
                use="sig",
                alg="EdDSA",
                kid=key_id,
                x=base64url(vault.signing_key(key_id).public_key().public_bytes_raw()),
            )
            for key_id in vault.key_ids
        ],
        signed_document=(
            "RFC 8785 JSON of {keyId, listing, signedAt, verification}: the first three as in the "
            "answer's `signature`, `verification` being the answer without it"
        ),
        commitment="SHA-256 (base64url) of the opening as RFC 8785 JSON",
    )
