"""The ledger of a deal: a line for each thing that happened, from which all that is kept follows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime
from typing import Any, Final

import orjson

from tolsey.actors.listing import evidence
from tolsey.actors.listing.deals.messages import NO_FIELDS, DealFields
from tolsey.storage.records.selling.deals import DealEvent, DealOffer, DealThread

KEPT_BESIDE: Final = {"seq", "hash", "moved_at"}
"""What of a deal says where its ledger is, and so does not stand in it."""
JSON: Final = {"leads", "fast_track", "diligence", "apa_terms", "transfer", "returns", "terms"} | {
    "contingencies"
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """What a line of the ledger is about; `before` is None for the first."""

    event: str
    actor: str
    by: str
    at: datetime
    before: DealThread | None
    after: DealThread
    given: DealFields = NO_FIELDS
    offer: DealOffer | None = None
    """The offer that it changed."""
    facts: Mapping[str, Any] | None = None


def first_of(deal_id: str) -> str:
    """Say what the first line of a deal's ledger follows."""
    return evidence.genesis("deal", "v1", deal_id)


def told(kept: DealThread | DealOffer) -> dict[str, Any]:
    """Write a deal or an offer as JSON, as its ledger has it."""
    return {
        one.name: _plain(one.name, getattr(kept, one.name))
        for one in fields(kept)
        if one.name not in KEPT_BESIDE
    }


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if name in JSON and value is not None:
        return orjson.loads(value)
    return value


def written(happening: Happening) -> tuple[DealThread, DealEvent]:
    """Write a line over the one before; the deal that follows from it knows it as its last."""
    before, after = happening.before, happening.after
    known = told(before) if before else {}
    seq = before.seq + 1 if before else 1
    said = {
        one.name: _plain(one.name, value)
        for one in fields(DealFields)
        if (value := getattr(happening.given, one.name))
    }
    line = {
        "v": 1,
        "dealId": after.id,
        "listingId": after.listing_id,
        "seq": seq,
        "at": happening.at.astimezone(UTC).isoformat(),
        "event": happening.event,
        "actor": happening.actor,
        "by": happening.by,
        "from": before.stage if before else None,
        "to": after.stage,
        "given": said,
        "sets": {k: v for k, v in told(after).items() if k not in known or known[k] != v},
        "prevHash": before.hash if before else first_of(after.id),
    }
    if happening.offer is not None:
        line["offer"] = told(happening.offer)
    if happening.facts:
        line["facts"] = dict(happening.facts)
    body = evidence.canonical(line)
    hashed = evidence.sha256(body)
    kept = replace(after, seq=seq, hash=hashed, moved_at=happening.at)
    event = DealEvent(deal_id=after.id, seq=seq, body=body.decode(), hash=hashed, at=happening.at)
    return kept, event


@dataclass(slots=True)
class LedgerReading:
    """What a ledger comes to: the deal and its offers, as JSON."""

    deal: dict[str, Any]
    offers: dict[str, dict[str, Any]]


def replayed(events: Iterable[DealEvent]) -> LedgerReading:
    """Read a ledger again, from its first line on."""
    found = LedgerReading({}, {})
    for event in events:
        line = orjson.loads(event.body)
        found.deal.update(line["sets"])
        if "offer" in line:
            found.offers[line["offer"]["id"]] = line["offer"]
    return found


def broken_at(deal_id: str, events: Iterable[DealEvent], head: str | None = None) -> int | None:
    """Find the first line of a ledger that is missing or is not what was written; None when it is whole."""
    lines = ((event.body, event.hash) for event in events)
    return evidence.broken_at(first_of(deal_id), lines, head)
