"""A random market is worth what it catches: bugs planted in how deals move, each found within some walks."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import pytest

from tests.actors.listing.deals.market import walked
from tolsey.actors.listing import evidence, lifecycle, machines
from tolsey.actors.listing.deals import guards, ledger, marks, moves, negotiating, timers, turns
from tolsey.actors.listing.deals.cases import Stage
from tolsey.actors.listing.deals.signatures import chain, signing
from tolsey.actors.listing.lifecycle import ListingEvent
from tolsey.actors.refusals import Refusal

WALKS: Final = 3_000
Patch = pytest.MonkeyPatch


def never(*args: Any, **kwargs: Any) -> bool:
    return False


def nothing(*args: Any, **kwargs: Any) -> None:
    return None


def without(table: Mapping[str, Any], name: str) -> Callable[[Patch], None]:
    """Drop one entry of a table: a guard, or what a move writes."""
    return lambda patch: patch.delitem(table, name)


def stage_skipped(patch: Patch) -> None:
    target = moves.target_of

    def skipped(case: Any, event: str) -> Stage:
        to = target(case, event)
        return Stage.TRANSFERRING if to is Stage.ESCROW_FUNDED else to

    patch.setattr(turns, "target_of", skipped)


def anyone_moves(patch: Patch) -> None:
    everyone = {
        key: replace(move, actors=frozenset("BSXEA")) for key, move in machines.DEAL.moves.items()
    }
    patch.setattr(machines, "DEAL", replace(machines.DEAL, moves=everyone))


def timestamp_taken_back(patch: Patch) -> None:
    reopened = marks.MARKS["offer.reopen"]
    patch.setitem(
        marks.MARKS,
        "offer.reopen",
        lambda case: {**reopened(case), "nda_signed_at": None},
    )


def hash_left_out(patch: Patch) -> None:
    """Let each line follow nothing."""
    canonical = evidence.canonical

    def unchained(document: Mapping[str, Any]) -> bytes:
        return canonical({**document, "prevHash": ""} if "prevHash" in document else document)

    patch.setattr(evidence, "canonical", unchained)


def price_not_written(patch: Patch) -> None:
    patch.setattr(ledger, "KEPT_BESIDE", {*ledger.KEPT_BESIDE, "reason"})
    told = ledger.told
    seen: list[int] = []

    def sometimes(kept: Any) -> dict[str, Any]:
        seen.append(1)
        said = told(kept)
        return said if len(seen) % 2 else {**said, "price": None} if "price" in said else said

    patch.setattr(ledger, "told", sometimes)


def price_thawed(patch: Patch) -> None:
    confirmed = marks.MARKS["funding.confirm"]
    patch.setitem(
        marks.MARKS,
        "funding.confirm",
        lambda case: {**confirmed(case), "price": 1},
    )


def early_timers(patch: Patch) -> None:
    short = {stage: (event, lasts / 2) for stage, (event, lasts) in timers.LASTS.items()}
    patch.setattr(timers, "LASTS", short)


def listing_kept_bound(patch: Patch) -> None:
    listed = turns.DealTurn._list

    def deaf(turn: turns.DealTurn, event: ListingEvent) -> Any:
        if event is ListingEvent.DEAL_LOST:
            return lifecycle.existing(turn.state)
        return listed(turn, event)

    patch.setattr(turns.DealTurn, "_list", deaf)


def counter_of_ones_own(patch: Patch) -> None:
    """Let who made an offer answer it, too."""
    answer = negotiating.answer

    def anyone(state: Any, message: Any) -> Any:
        head = state.deals[message.deal_id]
        if head.offer is not None and message.verb != "withdraw":
            message = replace(message, side=head.offer.side.other)
        return answer(state, message)

    patch.setattr(negotiating, "answer", anyone)


def never_accepted_whole(patch: Patch) -> None:
    patch.setattr(guards, "is_accepted", lambda _: True)


def second_buyer(patch: Patch) -> None:
    """Drop the guard, and the listing's own machine that would refuse after it."""
    listed = turns.DealTurn._list

    def deaf(turn: turns.DealTurn, event: ListingEvent) -> Any:
        record = lifecycle.existing(turn.state)
        if event is ListingEvent.OFFER_ACCEPTED and record.status == "UNDER_OFFER":
            return record
        return listed(turn, event)

    patch.delitem(guards.STANDS, "offer.accepted")
    patch.setattr(turns.DealTurn, "_list", deaf)


def any_text_signed(patch: Patch) -> None:
    sign = signing.sign

    def unread(state: Any, message: Any) -> Any:
        shown = state.deals[message.deal_id].signature.document_sha256
        return sign(state, replace(message, document_sha256=shown))

    patch.setattr(signing, "sign", unread)


def stale_document(patch: Patch) -> None:
    request = signing.request

    def late(state: Any, message: Any) -> Any:
        return request(state, replace(message, basis=state.deals[message.deal_id].deal.hash))

    patch.setattr(signing, "request", late)


def head_not_anchored(patch: Patch) -> None:
    move = turns.DealTurn.move

    def silent(turn: turns.DealTurn, deal_id: str, event: str, **said: Any) -> Any:
        return move(turn, deal_id, event, **{**said, "facts": None})

    patch.setattr(turns.DealTurn, "move", silent)


BUGS: Final[Mapping[str, Callable[[Patch], None]]] = {
    "second_buyer_accepted": second_buyer,
    "seller_without_payout_lets_in": without(guards.STANDS, "access.approve"),
    "purchase_without_guards": without(guards.STANDS, "apa.signed_by_all"),
    "operator_leaves_no_trace": lambda patch: patch.setattr(turns.DealTurn, "_note", nothing),
    "closed_before_inspection": without(guards.STANDS, "deal.close"),
    "closed_though_not_accepted": never_accepted_whole,
    "money_back_without_end": without(guards.STANDS, "refund.request"),
    "cancel_agreed_alone": without(guards.STANDS, "cancel.agree"),
    "date_agreed_alone": without(guards.STANDS, "exclusivity.agree"),
    "date_without_bound": without(guards.SAYS, "exclusivity.propose"),
    "escrow_of_another_amount": without(guards.SAYS, "escrow.open"),
    "funded_without_evidence": without(guards.SAYS, "escrow.funded"),
    "refund_before_return": without(guards.SAYS, "refund.accept"),
    "reason_not_asked": lambda patch: patch.setattr(guards, "wanted", lambda *_: []),
    "escrow_without_id": without(guards.STANDS, "escrow.funded"),
    "stage_skipped": stage_skipped,
    "anyone_moves": anyone_moves,
    "timestamp_taken_back": timestamp_taken_back,
    "hash_left_out": hash_left_out,
    "line_forgets_a_field": price_not_written,
    "price_thawed": price_thawed,
    "timers_early": early_timers,
    "timers_never": lambda patch: patch.setattr(timers, "set_for", lambda *_, **__: []),
    "time_not_stopped": lambda patch: patch.setattr(timers, "stood_still", lambda *_: timedelta()),
    "paused_deals_go_on": lambda patch: patch.setattr(moves, "is_paused", never),
    "listing_kept_bound": listing_kept_bound,
    "others_left_behind": lambda patch: patch.setattr(turns.DealTurn, "close_others", nothing),
    "sale_without_audit": lambda patch: patch.setattr(turns.DealTurn, "_audit", nothing),
    "offer_below_the_least": lambda patch: patch.setattr(negotiating, "LEAST_PERCENT", 0),
    "two_open_offers": lambda patch: patch.setattr(negotiating, "open_offer", nothing),
    "offer_without_time": lambda patch: patch.setattr(
        negotiating, "LONGEST_OFFER", timedelta(days=90)
    ),
    "counter_of_ones_own": counter_of_ones_own,
    "any_text_signed": any_text_signed,
    "one_party_signs_alone": lambda patch: patch.setattr(chain, "is_last", lambda *_: True),
    "stale_document": stale_document,
    "document_outlives_its_stage": lambda patch: patch.setattr(
        turns.DealTurn, "_void_document", nothing
    ),
    "head_of_the_chain_not_anchored": head_not_anchored,
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_caught(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BUGS[bug](monkeypatch)
    for seed in range(WALKS):
        try:
            walked(seed)
        except (
            AssertionError,
            LookupError,
            Refusal,
        ):  # an honest act that is refused is found, too
            return
    pytest.fail(f"{bug} survived {WALKS} walks")


def test_without_a_bug_nothing_is_found() -> None:
    for seed in range(WALKS, WALKS + 100):
        walked(seed)
