"""A market at random: buyers, a seller, a stranger, an operator and the clock, and what must hold after each step.

What is checked is written against `machines.json` and the ledger alone, not against the code that moves deals.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Final

import orjson

from tests.actors.listing.deals.rules_of_moves import HELD, Line
from tests.actors.listing.states import NOON, drafted
from tolsey.actors.listing import lifecycle, machines
from tolsey.actors.listing.deals import ledger, negotiating, turns, views
from tolsey.actors.listing.deals.messages import (
    AdvanceDeal,
    AnswerOffer,
    DealDue,
    DealFields,
    DealView,
    EndSignature,
    MakeOffer,
    OfferDue,
    OfferTerms,
    RequestAccess,
    RequestSignature,
    SignatureDue,
    SignDocument,
    SignerFacts,
)
from tolsey.actors.listing.deals.signatures import chain, signing
from tolsey.actors.listing.deals.signatures.signing import DocumentDraft
from tolsey.actors.listing.messages import PauseListing, PublishListing, ReviewListing
from tolsey.actors.listing.state import ListingState
from tolsey.actors.refusals import Forbidden, InvalidTransition, Refusal
from tolsey.runtime.decision import Decision, Tell
from tolsey.storage.records.journal import AuditRecord
from tolsey.storage.records.selling.deals import (
    DealEvent,
    DealOffer,
    DealThread,
    LegalSignature,
    SignatureEvent,
)
from tolsey.storage.records.selling.listing import ListingRecord, ListingStatus

WRITTEN: Final = orjson.loads(Path(machines.__file__).with_name("machines.json").read_bytes())
DEAL: Final = {(m["from"], m["event"]): m for m in WRITTEN["deal"]["transitions"]}
OFFER: Final = {(m["from"], m["event"]): m["to"] for m in WRITTEN["offer"]["transitions"]}
LISTING: Final = {(m["from"], m["to"]) for m in WRITTEN["listing"]["transitions"]}
BUYERS: Final = ("org_2", "org_3", "org_4")
SOLD_ONCE: Final = (
    *("UNDER_OFFER", "LOI_SIGNED", "DUE_DILIGENCE", "APA_SIGNED"),
    *("ESCROW_FUNDED", "TRANSFERRING", "DISPUTED"),
)
LETTER_OR_LATER: Final = SOLD_ONCE[1:]
FUNDED: Final = ("ESCROW_FUNDED", "TRANSFERRING", "DISPUTED", "CLOSED", "REFUND_REQUESTED")
LASTS: Final = {
    "timer.14d": timedelta(days=14),
    "timer.30d": timedelta(days=30),
    "timer.21d_unfunded": timedelta(days=21),
    "timer.72h": timedelta(hours=72),
}
SIGNATURES: Final = ("nda.signed_by_all", "loi.signed_by_all", "apa.signed_by_all")
ENDS: Final = (
    *("withdraw", "decline", "access.decline", "dispute.open", "offer.reopen"),
    "cancel.propose",
)
PAPERS: Final = {"NDA": SIGNATURES[0], "LOI": SIGNATURES[1], "APA": SIGNATURES[2]}
PROVIDED: Final = (("escrow.funded", "E"), ("escrow.released", "E"), ("escrow.refunded", "E"))
OPEN: Final = ("PENDING", "PENDING_COUNTER")
PRICE: Final = 2_000_000
ASSETS: Final = '["domain", "store"]'
MOMENTS: Final = (
    *("nda_signed_at", "loi_signed_at", "apa_signed_at", "escrow_funded_at", "closed_at"),
    *("escrow_released_at", "funding_confirmed_at", "refund_requested_at", "exclusivity_until"),
    *("accepted_by_buyer_at", "inspection_ends_at", "cancel_proposed_at"),
)

DUE: Final[Mapping[type[Any], Any]] = {
    DealDue: negotiating.due,
    OfferDue: negotiating.offer_due,
    SignatureDue: signing.due,
}


def written_nda(deal: DealThread, listing: ListingRecord, signature_id: str) -> DocumentDraft:
    return DocumentDraft(
        text=f"NDA of {deal.id} about {listing.title} at {deal.hash}",
        template_version="t",
        hosted_url=f"https://tolsey.example/{signature_id}",
    )


requests: Final = partial(negotiating.request, write_nda=written_nda)
approves: Final = partial(negotiating.approve, write_nda=written_nda)


@dataclass
class Market:
    """A listing, its deals, what is written of them, and the timers that wait."""

    random: Random = field(default_factory=lambda: Random(1))  # noqa: S311 - it chooses tests
    state: ListingState = field(
        default_factory=lambda: drafted(
            ListingStatus.ACTIVE, asking_price=PRICE, included_assets=ASSETS
        )
    )
    now: datetime = NOON
    may_sell: bool = True
    lines: dict[str, list[DealEvent]] = field(default_factory=lambda: defaultdict(list))
    offers: dict[str, DealOffer] = field(default_factory=dict)
    papers: dict[str, LegalSignature] = field(default_factory=dict)
    chains: dict[str, list[SignatureEvent]] = field(default_factory=lambda: defaultdict(list))
    audits: list[AuditRecord] = field(default_factory=list)
    waiting: list[tuple[datetime, int, Any]] = field(default_factory=list)
    reached: set[str] = field(default_factory=set)
    ids: Iterator[int] = field(default_factory=count)

    # Who does what

    def step(self) -> None:
        """Do something at random, or let time pass."""
        deals = list(self.state.deals.values())
        choices: list[tuple[int, Any]] = [
            (2, self.ask_access),
            (3, self.pass_time),
            (1, self.meddle),
        ]
        if deals:
            choices += [(4, self.advance), (10, self.make_offer), (8, self.answer), (8, self.sign)]
            choices += [(14, self.press_on), (6, self.ask_signature), (8, self.sign_paper)]
        (act,) = self.random.choices([one for _, one in choices], [n for n, _ in choices])
        act()

    def ask_access(self) -> None:
        buyer = self.random.choice((*BUYERS, "org_1"))
        message = RequestAccess(
            deal_id=f"deal_{next(self.ids)}",
            buyer_id=buyer,
            by=f"usr_{buyer}",
            message=None,
            may_sell=self.may_sell,
            at=self.now,
        )
        self.take(requests, message)

    def deal(self) -> DealThread:
        """Choose a deal; one that goes on rather than one that is over."""
        found = [head.deal for head in self.state.deals.values()]
        alive = [one for one in found if one.stage not in WRITTEN["deal"]["final"]]
        return self.random.choice(alive if alive and self.random.random() < 0.9 else found)

    def advance(self) -> None:
        deal = self.deal()
        actor = self.random.choice("BBSSA")
        events = [event for source, event in DEAL if source == deal.stage] or ["withdraw"]
        event = self.random.choice(events)
        if event in ENDS and self.random.random() < 0.8:
            return
        if self.random.random() < 0.1:
            event = self.random.choice([event for _, event in DEAL])
        self.send(deal, event, actor)

    def press_on(self) -> None:
        """Make a move that is allowed, with the words that it wants: so that deals get somewhere."""
        deal = self.deal()
        view = views.view_of(self.state, deal.id, self.now, may_sell=self.may_sell)
        ways = [
            (actor, event)
            for actor, names in (("B", view.of_buyer), ("S", view.of_seller))
            for event in names
            if event not in ENDS
        ]
        if ways:
            actor, event = self.random.choice(ways)
            self.send(deal, event, actor, fitting=True)

    def send(self, deal: DealThread, event: str, actor: str, *, fitting: bool = False) -> None:
        fields = (
            fitting_words(deal, event, self)
            if fitting or self.random.random() < 0.7
            else (wild_words(self.random))
        )
        expected = deal.stage if self.random.random() < 0.9 else "LOI_SIGNED"
        message = AdvanceDeal(
            deal_id=deal.id,
            event=event,
            expected_stage=expected,
            actor=actor,
            by=f"usr_{actor}",
            at=self.now,
            fields=fields,
            may_sell=self.may_sell,
        )
        allowed = views.view_of(self.state, deal.id, self.now, may_sell=self.may_sell)
        mine = {"B": allowed.of_buyer, "S": allowed.of_seller, "A": allowed.of_operator}.get(actor)
        refused = self.take(approves if event == "access.approve" else negotiating.advance, message)
        if mine is None or expected != deal.stage:
            return
        move = DEAL.get((deal.stage, event))
        if event not in mine and actor in "BSA":
            assert refused is not None, f"{event} was not allowed"
        if event in mine:
            assert not isinstance(refused, Forbidden | InvalidTransition), (event, refused)
        if move is not None and actor not in move["actors"].split(","):
            assert isinstance(refused, Forbidden), f"{event} by {actor}"

    def sign(self) -> None:
        """Let everybody have signed what is next, or the escrow provider tell of the money."""
        deal = self.deal()
        signing = [one for one in SIGNATURES if (deal.stage, one) in DEAL] or SIGNATURES
        event, actor = self.random.choice(signing), "X"
        if self.random.random() < 0.1:
            event, actor = self.random.choice(PROVIDED)
        turn = turns.DealTurn(self.state, self.now)
        given = DealFields(evidence="evt_1")
        try:
            turn.move(deal.id, event, actor=actor, given=given, may_sell=self.may_sell)
        except Refusal:
            return
        self.follow(Decision(turn.state, None, turn.records, turn.effects))

    def ask_signature(self) -> None:
        """Put a document before both parties, sometimes one of a deal that moved meanwhile."""
        deal, kind = self.deal(), self.random.choice(("NDA", "LOI", "APA"))
        stale = self.random.random() < 0.1
        message = RequestSignature(
            deal_id=deal.id,
            signature_id=f"sig_{next(self.ids)}",
            document_type=kind,
            provider="PLATFORM",
            hosted_url=None,
            template_version="t",
            document=f"{kind} of {deal.id} at {deal.hash}",
            basis="stale" if stale else deal.hash,
            actor=self.random.choice("BS"),
            by="usr_1",
            at=self.now,
            may_sell=self.may_sell,
        )
        if self.take(signing.request, message) is None:
            assert not stale, "a document of another state was put before the parties"

    def sign_paper(self) -> None:
        """Sign or decline what waits, with the right hash or another."""
        heads = [head for head in self.state.deals.values() if head.signature is not None]
        if not heads:
            return
        head = self.random.choice(heads)
        signature, before = head.signature, head.deal
        assert signature is not None
        side = self.random.choice(("buyer", "seller"))
        if self.random.random() < 0.05:
            event = self.random.choice(("decline", "void"))
            ends = EndSignature(
                deal_id=before.id,
                signature_id=signature.id,
                event=event,
                reason="no",
                side=side,
                by="usr_1",
                at=self.now,
            )
            self.take(signing.end, ends)
            return
        is_other = self.random.random() < 0.1
        signer = SignerFacts(
            user_id=f"usr_{side}",
            side=side,
            email_sha256="e",
            session_sha256="s",
            ip="203.0.113.7",
            user_agent="test",
        )
        gives = SignDocument(
            deal_id=before.id,
            signature_id=signature.id,
            typed_name="Ada",
            consent_version=chain.CONSENT_VERSION,
            document_sha256="0" * 64 if is_other else signature.document_sha256,
            signer=signer,
            at=self.now,
            may_sell=self.may_sell,
        )
        had = chain.signed_by(signature)
        refused = self.take(signing.sign, gives)
        after = self.state.deals[before.id]
        assert after.signature is not None
        if refused is None and side not in had:
            assert not is_other, "another text was signed"
            assert self.now < signature.expires_at, "signed after its end"
        both = {"buyer", "seller"} <= chain.signed_by(after.signature).keys()
        assert both == (after.signature.status == "SIGNED"), "signed by one party alone"
        if refused is not None or side in had:
            assert after.deal == before, "a refused signature moved the deal"

    def make_offer(self) -> None:
        deal = self.deal()
        terms = self.terms()
        message = MakeOffer(
            deal_id=deal.id,
            offer_id=f"offer_{next(self.ids)}",
            terms=terms,
            by="usr_B",
            at=self.now,
        )
        if self.take(negotiating.offer, message) is None:
            assert deal.stage == "NDA_SIGNED"
            assert terms.amount >= PRICE * 15 / 100, "less than 15% was offered"

    def terms(self) -> OfferTerms:
        amount = self.random.choice((PRICE // 10, PRICE // 2, PRICE, 3_000_000))
        hours = self.random.choice((None, 1, 24, 200, 400))
        until = self.now + timedelta(hours=hours) if hours else None
        return OfferTerms(amount=amount, currency="USD", valid_until=until)

    def answer(self) -> None:
        heads = [head for head in self.state.deals.values() if head.offer is not None]
        if not heads:
            return
        live = [head for head in heads if head.offer and head.offer.status in OPEN]
        head = self.random.choice(live or heads)
        offer = head.offer
        assert offer is not None
        verb = self.random.choice(("accept", "accept", "accept", "reject", "counter", "withdraw"))
        side = self.random.choice(("buyer", "seller"))
        message = AnswerOffer(
            deal_id=head.deal.id,
            offer_id=offer.id,
            verb=verb,
            side=side,
            by=f"usr_{side}",
            at=self.now,
            counter_id=f"offer_{next(self.ids)}" if verb == "counter" else None,
            counter=self.terms() if verb == "counter" else None,
        )
        still = self.stood_still(head.deal, offer.made_at, self.now)
        if self.take(negotiating.answer, message) is None:
            assert (side == offer.side) == (verb == "withdraw"), f"{verb} by the {side}"
            if verb != "withdraw":
                assert self.now < offer.valid_until + still, "an offer was answered after its end"

    def meddle(self) -> None:
        """Let the seller pause, an operator suspend, a payout account come and go."""
        at, way = self.now, self.random.randrange(6)
        if way == 0:
            self.may_sell = not self.may_sell
        elif way == 1:
            self.take(lifecycle.pause, PauseListing(at))
        elif way in (2, 3, 5):
            publish = PublishListing(at=at, by="usr_1", automatic=True)
            self.take(lifecycle.publish, publish)
        else:
            verdict = "suspend" if self.random.random() < 0.2 else "reinstate"
            review = ReviewListing(verdict=verdict, reason="odd", by="usr_A", at=at)
            self.take(negotiating.following(negotiating.reviewed), review)

    def pass_time(self, by: timedelta | None = None) -> None:
        """Let time pass: what falls due comes at its time, each once."""
        until = self.now + (by or timedelta(hours=self.random.choice((1, 5, 10, 30, 80, 400))))
        while self.waiting and self.waiting[0][0] <= until:
            due_at, _, message = heapq.heappop(self.waiting)
            self.now = max(self.now, due_at)
            decide: Any = DUE[type(message)]
            self.follow(decide(self.state, message))
        self.now = until

    # What must hold

    def take(self, decide: Any, message: Any) -> Refusal | None:
        try:
            decision = decide(self.state, message)
        except Refusal as refused:
            return refused
        if isinstance(decision.reply, DealView):
            assert decision.reply.deal == decision.state.deals[decision.reply.deal.id].deal
        self.follow(decision)
        return None

    def follow(self, decision: Decision[ListingState, Any]) -> None:
        before, self.state = self.state, decision.state
        written = [one for one in decision.records if isinstance(one, DealEvent)]
        for line in written:
            self.read_line(before, line)
        self.papers |= {one.id: one for one in decision.records if isinstance(one, LegalSignature)}
        for one in decision.records:
            if isinstance(one, SignatureEvent):
                self.chains[one.signature_id].append(one)
        self.offers |= {one.id: one for one in decision.records if isinstance(one, DealOffer)}
        noted = [one for one in decision.records if isinstance(one, AuditRecord)]
        self.audits += noted
        by_operator = sum(orjson.loads(line.body)["actor"] == "A" for line in written)
        assert by_operator == sum(one.event == "admin.deal.moved" for one in noted), (
            "an operator's act is in no audit row"
        )
        for effect in decision.effects:
            if isinstance(effect, Tell) and type(effect.message) in DUE:
                assert effect.due_at is not None
                assert effect.key
                heapq.heappush(self.waiting, (effect.due_at, next(self.ids), effect.message))
        self.check_listing(before)
        for id, head in self.state.deals.items():
            old = before.deals.get(id)
            if old is not head:
                self.check_deal(old.deal if old else None, head.deal, head.offer)
                self.reached.add(head.deal.stage)

    def read_line(self, before: ListingState, line: DealEvent) -> None:
        said = orjson.loads(line.body)
        kept = self.lines[line.deal_id]
        last = orjson.loads(kept[-1].body) if kept else None
        assert said["from"] == (last["to"] if last else None), "a stage was skipped"
        event, actor = said["event"], said["actor"]
        if event == "signature.requested" or (
            event.startswith("offer.") and event not in ("offer.accepted", "offer.reopen")
        ):
            assert said["from"] == said["to"]
        else:
            move = DEAL[said["from"] or "-", event]
            assert said["to"] == move["to"], f"{event} leads elsewhere"
            assert actor in move["actors"].split(","), f"{event} by {actor}"
            others = [
                orjson.loads(lines[-1].body)["to"]
                for id, lines in self.lines.items()
                if id != line.deal_id
            ]
            waits = any(stage in LETTER_OR_LATER for stage in others)
            ends = ("withdraw", "decline", "access.decline", "listing.gone", "access.request")
            assert not waits or event in ends, f"{event} while another has the exclusivity"
            self.check_event(before, said, line)
        if "offer" in said:
            self.check_offer(before, said)
        kept.append(line)

    def check_event(self, before: ListingState, said: dict[str, Any], line: DealEvent) -> None:
        event, at = said["event"], datetime.fromisoformat(said["at"])
        if said["actor"] == "A":
            assert said["given"].get("reason"), f"{event} by an operator without a reason"
        head = before.deals.get(line.deal_id)
        if head is None:
            return
        deal = head.deal
        if event == "offer.accepted":
            taken = (
                one.deal.stage in SOLD_ONCE and id != deal.id for id, one in before.deals.items()
            )
            assert not any(taken), "a second buyer was accepted"
        if event in LASTS:
            still = self.stood_still(deal, deal.entered_at, at)
            assert at - deal.entered_at >= LASTS[event] + still, f"{event} came early"
        held = HELD.get(event)
        if held is not None:
            held(Line(said=said, deal=deal, at=at, may_sell=self.may_sell))

    def check_offer(self, before: ListingState, said: dict[str, Any]) -> None:
        offer, event = said["offer"], said["event"].removeprefix("offer.")
        event = {"accepted": "accept"}.get(event, event)
        head = before.deals[offer["deal_id"]]
        old = head.offer if head.offer is not None and head.offer.id == offer["id"] else None
        assert OFFER[old.status if old else "-", event] == offer["status"], f"offer.{event}"
        if event == "counter_created":
            assert head.offer is not None
            assert offer["parent_id"] == head.offer.id
            assert offer["side"] != head.offer.side, "a counter-offer of one's own"
        if old is None:
            made, until = map(datetime.fromisoformat, (offer["made_at"], offer["valid_until"]))
            assert timedelta(hours=24) <= until - made <= timedelta(days=14)
        elif event == "timer" and said["to"] == "NDA_SIGNED":
            at = datetime.fromisoformat(said["at"])
            assert at >= old.valid_until + self.stood_still(head.deal, old.made_at, at)

    def stood_still(self, deal: DealThread, since: datetime, until: datetime) -> timedelta:
        """Add up, by the ledgers of the others, for how long another buyer had the exclusivity."""
        still = timedelta()
        for id, lines in self.lines.items():
            begun: datetime | None = None
            for line in lines if id != deal.id else ():
                said = orjson.loads(line.body)
                at, leads = datetime.fromisoformat(said["at"]), said["to"] in LETTER_OR_LATER
                if leads and begun is None:
                    begun = at
                elif not leads and begun is not None:
                    still += max(min(at, until) - max(begun, since), timedelta())
                    begun = None
            if begun is not None:
                still += max(until - max(begun, since), timedelta())
        return still

    def check_listing(self, before: ListingState) -> None:
        was, now = before.listing, self.state.listing
        assert was is not None
        assert now is not None
        stages = [head.deal.stage for head in self.state.deals.values()]
        assert sum(stage in SOLD_ONCE for stage in stages) <= 1, "two buyers"
        held = [id for id, head in self.state.deals.items() if head.deal.stage in SOLD_ONCE]
        led = {id for id, head in self.state.deals.items() if head.deal.leads != "[]"}
        assert ([self.state.bound] if self.state.bound else [], set(self.state.led)) == (held, led)
        bound = any(stage in SOLD_ONCE for stage in stages)
        assert bound == (now.status == "UNDER_OFFER") or now.status == "SUSPENDED", (
            f"a listing that is {now.status} with {stages}"
        )
        if any(stage in ("CLOSED", "REFUND_REQUESTED") for stage in stages) and not bound:
            sold = [one for one in stages if one in ("CLOSED", "REFUND_REQUESTED")]
            again = "REFUNDED" in stages
            assert now.status == "SOLD" or again or not sold
        if now.status in ("SOLD", "SUSPENDED"):
            early = ("INQUIRY", "NDA_PENDING", "NDA_SIGNED")
            gone = was.status != now.status
            assert not gone or not any(stage in early for stage in stages), "left behind by a sale"

    def check_deal(
        self, before: DealThread | None, after: DealThread, offer: DealOffer | None
    ) -> None:
        if before is not None:
            for name in MOMENTS:
                taken_back = getattr(before, name) is not None and getattr(after, name) is None
                assert not taken_back, f"{name} was taken back"
            if before.apa_signed_at:
                assert (before.price, before.apa_terms) == (after.price, after.apa_terms)
        if after.stage in SOLD_ONCE:
            assert offer is not None
            assert (after.accepted_offer_id, after.price) == (offer.id, offer.amount), (
                "another price"
            )
        if after.stage in FUNDED:
            assert after.apa_signed_at
            assert after.escrow_id
            assert after.escrow_funded_at
        if after.stage == "CLOSED":
            said = [orjson.loads(line.body) for line in self.lines[after.id]]
            ended = [one for one in said if one["to"] == "CLOSED" and one["from"] != "CLOSED"]
            lapsed = after.inspection_ends_at and after.closed_at
            assert after.closed_at
            assert (
                after.escrow_released_at
                or after.accepted_by_buyer_at
                or (lapsed and after.closed_at >= after.inspection_ends_at)  # type: ignore[operator]
                or any(one["actor"] == "A" for one in ended)
            ), "closed for no reason"
            assert any(one.event == "marketplace.transaction" for one in self.audits)
        lines = self.lines[after.id]
        assert (after.seq, after.hash) == (len(lines), lines[-1].hash)
        if after.stage == "NDA_PENDING" and before and before.stage == "INQUIRY":
            assert after.entered_at == self.now or after.entered_at <= self.now

    def check_ledgers(self) -> None:
        """Read every ledger again: it is whole, and what is kept follows from it."""
        for id, paper in self.papers.items():
            assert chain.broken_at(paper, self.chains[id]) is None
            if paper.status == "SIGNED":
                anchored = f'"auditHash":"{paper.audit_hash}"'
                assert any(anchored in line.body for line in self.lines[paper.deal_id])
        for id, head in self.state.deals.items():
            assert head.signature or head.deal.stage != "NDA_PENDING", "let in without an NDA"
            if head.signature is not None:
                assert head.signature == self.papers[head.signature.id]
                waits = head.signature.status in ("PENDING", "VIEWED")
                assert not waits or DEAL.get(
                    (head.deal.stage, PAPERS[head.signature.document_type])
                )
            lines = self.lines[id]
            assert ledger.broken_at(id, lines, head.deal.hash) is None
            told = ledger.replayed(lines)
            assert told.deal == ledger.told(head.deal), "the ledger says otherwise"
            kept = {one.id: ledger.told(one) for one in self.offers.values() if one.deal_id == id}
            assert told.offers == kept, "the ledger says otherwise of an offer"
            if head.offer is not None:
                assert kept[head.offer.id] == ledger.told(head.offer)
            open_ones = [one for one in told.offers.values() if one["status"] in OPEN]
            assert len(open_ones) <= 1, "two open offers"
            for n, line in enumerate(lines):
                forged = replace(line, body=line.body.replace('"by":"', '"by":"x', 1))
                cut = [*lines[:n], forged, *lines[n + 1 :]]
                if len(lines) < 6:
                    assert ledger.broken_at(id, cut) == n + 1, "a changed line was not found"

    def run_out(self) -> None:
        """Let a year pass: whatever time ends has ended, and nobody has to come back for it."""
        for _ in range(40):
            self.pass_time(timedelta(days=10))
        timed = [
            (id, head.deal.stage)
            for id, head in self.state.deals.items()
            if head.deal.stage in ("INQUIRY", "NDA_PENDING", "UNDER_OFFER", "LOI_SIGNED")
            or head.deal.stage in ("DUE_DILIGENCE", "APA_SIGNED")
            or (head.deal.stage == "REFUND_REQUESTED" and not head.deal.escalated)
        ]
        leads = any(head.deal.stage in LETTER_OR_LATER for head in self.state.deals.values())
        assert leads or not timed, f"forgotten by the clock: {timed}"


def wild_words(random: Random) -> DealFields:
    """Say anything."""
    return DealFields(
        reason=random.choice((None, "because", "asset_missing")),
        evidence=random.choice((None, "a receipt")),
        item=random.choice((None, "asset-1", "revenue", "none")),
        items=random.choice(((), ("asset-1",), ("asset-1", "asset-2"))),
        verdict=random.choice((None, "accepted", "rejected", "maybe")),
        escrow_id=random.choice((None, "esc_1")),
        amount=random.choice((None, 1, PRICE)),
        currency=random.choice((None, "USD", "EUR")),
        escrow_returned=random.random() < 0.5,
        escrow_released=random.random() < 0.5,
        assets_returned=random.random() < 0.5,
    )


def fitting_words(deal: DealThread, event: str, market: Market) -> DealFields:
    """Say what a move wants."""
    random = market.random
    listed = orjson.loads(deal.diligence if event.startswith("diligence") else deal.transfer)
    ids: Sequence[str] = [one["id"] for one in listed] or ["none"]
    waiting = [one["id"] for one in listed if not one.get("resolvedAt") and not one.get("verdict")]
    verdict = "rejected" if random.random() < 0.15 else "accepted"
    ahead = timedelta(days=random.choice((10, 59, 61)))
    return DealFields(
        reason="asset_missing",
        evidence=random.choice((None, "a receipt")) if event == "escrow.funded" else "a receipt",
        item=random.choice(waiting or ids),
        items=tuple(ids) if event == "refund.request" else tuple(orjson.loads(deal.returns)),
        verdict=verdict,
        until=market.now + ahead if event == "exclusivity.propose" else None,
        escrow_id="esc_1",
        amount=deal.price if random.random() < 0.9 else 1,
        currency=deal.currency,
        escrow_returned=True,
        escrow_released=random.random() < 0.5,
        assets_returned=True,
    )


def walked(seed: int, steps: int = 150) -> Market:
    """Let a market run, and hold it to its rules."""
    market = Market(Random(seed))  # noqa: S311 - it chooses tests
    for _ in range(steps):
        market.step()
    market.check_ledgers()
    market.run_out()
    market.check_ledgers()
    return market
