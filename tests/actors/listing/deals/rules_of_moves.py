"""What must have held when a deal moved, by its event: each reads the line of the ledger and the deal before."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import orjson

from tolsey.storage.records.selling.deals import DealThread


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of a ledger: what it says, and the deal before it."""

    said: Mapping[str, Any]
    deal: DealThread
    at: datetime
    may_sell: bool

    @property
    def given(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.said["given"]
        return found

    @property
    def other(self) -> str:
        return "seller" if self.said["actor"] == "B" else "buyer"


def lapsed(line: Line) -> None:
    assert line.deal.exclusivity_until is not None
    assert line.at >= line.deal.exclusivity_until, "exclusivity ended early"


def ended(line: Line) -> None:
    reasoned: tuple[str, ...] = ("LOI_SIGNED", "DUE_DILIGENCE")
    if line.said["event"] == "decline":
        reasoned = ("UNDER_OFFER", *reasoned)
    if line.said["from"] in reasoned:
        assert line.given.get("reason"), "nobody said why"


def approved(line: Line) -> None:
    assert line.may_sell, "let in by a seller who cannot be paid"


def purchased(line: Line) -> None:
    deal, terms = line.deal, line.said["sets"]["apa_terms"]
    assert line.may_sell
    assert all(one["resolvedAt"] for one in orjson.loads(deal.diligence) if one["blocking"])
    if line.said["from"] == "UNDER_OFFER":
        assert sorted(orjson.loads(deal.fast_track)) == ["buyer", "seller"]
        assert (deal.price or 0) <= 2_500_000
    assert terms["price"] == {"amount": deal.price, "currency": deal.currency}
    assert terms["inspectionDays"] >= 7


def opened_escrow(line: Line) -> None:
    given = line.given["amount"], line.given["currency"]
    assert given == (line.deal.price, line.deal.currency), "escrow of another amount"


def funded(line: Line) -> None:
    if line.said["actor"] == "S":
        assert line.deal.funding_confirmed_at or line.given.get("evidence"), "nobody showed money"


def cancelled(line: Line) -> None:
    deal = line.deal
    assert deal.cancel_proposed_by == line.other, "agreed with oneself"
    assert deal.cancel_proposed_at is not None
    assert line.at - deal.cancel_proposed_at <= timedelta(days=7)


def proposed_date(line: Line) -> None:
    assert datetime.fromisoformat(line.given["until"]) - line.at <= timedelta(days=60)


def agreed_date(line: Line) -> None:
    assert line.deal.exclusivity_proposed_by == line.other, "agreed with oneself"


def closed(line: Line) -> None:
    if line.said["actor"] != "S":
        return
    deal, parts = line.deal, orjson.loads(line.deal.transfer)
    accepted = parts and all(one["verdict"] == "accepted" for one in parts)
    is_over = deal.inspection_ends_at is not None and line.at >= deal.inspection_ends_at
    unrejected = not any(one["verdict"] == "rejected" for one in parts)
    assert accepted or (is_over and unrejected), "closed before the inspection ended"


def asked_back(line: Line) -> None:
    assert line.deal.closed_at is not None
    assert line.at - line.deal.closed_at <= timedelta(days=7), "money-back after 7 days"
    assert line.deal.refund_requested_at is None, "money-back asked for twice"


def gave_back(line: Line) -> None:
    assert set(orjson.loads(line.deal.returns)) <= set(line.given.get("items", []))


def resumed(line: Line) -> None:
    ends = line.deal.inspection_ends_at
    if ends is not None:
        until = line.said["sets"].get("inspection_ends_at")
        stood = line.at - line.deal.entered_at
        assert stood == timedelta() or datetime.fromisoformat(until or ends.isoformat()) == (
            ends + stood
        ), "the inspection went on during the dispute"


def reopened(line: Line) -> None:
    assert line.deal.loi_signed_at is None


HELD: Final[Mapping[str, Callable[[Line], None]]] = {
    "exclusivity.lapsed": lapsed,
    "withdraw": ended,
    "decline": ended,
    "access.approve": approved,
    "apa.signed_by_all": purchased,
    "escrow.open": opened_escrow,
    "escrow.funded": funded,
    "cancel.agree": cancelled,
    "exclusivity.propose": proposed_date,
    "exclusivity.agree": agreed_date,
    "deal.close": closed,
    "refund.request": asked_back,
    "refund.accept": gave_back,
    "offer.reopen": reopened,
    "dispute.resume": resumed,
}
