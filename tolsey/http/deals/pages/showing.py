"""A deal as its page shows it: whose turn it is, what can be done, and everything that belongs to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tolsey.http.answers.market.deals import (
    DealAnswer,
    DealEventAnswer,
    DealFileAnswer,
    DealViewingAnswer,
    DiligenceItemAnswer,
)
from tolsey.http.answers.market.offers import OfferAnswer, OfferDraftAnswer
from tolsey.http.answers.money.credits import MoneyAnswer
from tolsey.http.deals.pages import words
from tolsey.http.deals.pages.words import MoveWords
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.standings import ShownState
from tolsey.http.layout.templates import Page
from tolsey.http.layout.words import whole_money
from tolsey.http.selling.form_pages import DOCUMENT_KINDS
from tolsey.storage.records.selling.deals import (
    OPEN_SIGNATURES,
    DealStage,
    LegalSignature,
    Side,
)

BOTH: Final = 2
"""How many parties agree to the fast track."""


def amount(said: MoneyAnswer | None) -> str:
    """Write an amount for people; whole units where there are no others."""
    return whole_money(said.amount, said.currency) if said else ""


@dataclass(frozen=True, slots=True)
class OfferShown:
    """An offer in the words of its page, to one of the parties."""

    offer: OfferAnswer
    role: str
    verbs: Sequence[str]
    """What the reader can do with it now."""

    @property
    def whose(self) -> str:
        """Who made it."""
        if self.offer.side == self.role:
            return _("Your offer")
        return _("The buyer's offer") if self.offer.side == Side.BUYER else _("The seller's offer")

    @property
    def standing(self) -> ShownState:
        """What became of it."""
        tone, said = words.OFFER_STATES[self.offer.status]
        if "accept" in self.verbs:
            return ShownState("you", _("Your turn"))
        return ShownState(tone, _(said))

    @property
    def is_open(self) -> bool:
        """Whether it waits for an answer."""
        return self.offer.ended_at is None

    @property
    def price(self) -> str:
        """What would be paid."""
        return amount(self.offer.amount)

    @property
    def terms(self) -> Sequence[tuple[str, str]]:
        """What else it says, by name."""
        offer, currency = self.offer, self.offer.amount.currency
        found = [(_("Paid"), _(words.OFFER_TYPES[offer.type]))]
        if (lent := offer.seller_financing) is not None:
            down = whole_money(lent.down_payment, currency)
            said = _("%(down)s at once, the rest over %(months)s months at %(rate)s%% a year")
            found.append(
                (
                    _("Lent by the seller"),
                    said % {"down": down, "months": lent.months, "rate": f"{lent.rate:g}"},
                )
            )
        if (later := offer.earnout) is not None:
            cap = whole_money(later.cap, currency)
            said = _("by %(metric)s, up to %(cap)s over %(months)s months")
            found.append(
                (
                    _("Paid later"),
                    said % {"metric": later.metric, "cap": cap, "months": later.months},
                )
            )
        found.append((_("Inventory"), _(words.INVENTORY[offer.inventory])))
        if offer.contingencies:
            found.append((_("Conditions"), "; ".join(offer.contingencies)))
        if offer.closing_by is not None:
            found.append((_("Close by"), offer.closing_by.isoformat()))
        found.append((_("Money shown"), offer.proof_of_funds or _("Not yet")))
        return found


@dataclass(frozen=True, slots=True)
class DraftShown:
    """What an agent prepared as the answer to an offer, to a person of the party whose answer it would be."""

    draft: OfferDraftAnswer
    may_send: bool

    @property
    def says(self) -> str:
        """What it would say to the other party."""
        counter = self.draft.counter
        if counter is not None:
            return _("Counter with %(price)s") % {"price": amount(counter.amount)}
        return _("Accept the offer") if self.draft.reply == "accept" else _("Refuse the offer")

    @property
    def message(self) -> str:
        """What the other party would read."""
        return (self.draft.counter and self.draft.counter.message) or ""

    @property
    def sends(self) -> str:
        """Where a person looks at it once more, changes it, and sends it."""
        draft = self.draft
        if draft.counter is not None:
            return f"/deals/{draft.deal_id}/offer?to={draft.offer_id}&draft=yes"
        return f"/deals/{draft.deal_id}/offers/{draft.offer_id}/{draft.reply}"

    @property
    def discards(self) -> str:
        """Where it is discarded."""
        return f"/deals/{self.draft.deal_id}/offer/discard?to={self.draft.offer_id}"


@dataclass(frozen=True, slots=True)
class PaperShown:
    """A document of a deal: how far it is signed, and by whom."""

    signature: LegalSignature
    signed_by_reader: bool

    @property
    def title(self) -> str:
        """What it is."""
        return _(words.PAPERS[self.signature.document_type])

    @property
    def standing(self) -> ShownState:
        """How far it is signed."""
        tone, said = words.PAPER_STATES[self.signature.status]
        if not self.is_open:
            return ShownState(tone, _(said))
        if self.signed_by_reader:
            return ShownState("wait", _("Waits for the other party"))
        return ShownState("you", _("Yours to sign"))

    @property
    def is_open(self) -> bool:
        """Whether it can still be signed."""
        return self.signature.status in OPEN_SIGNATURES


@dataclass(frozen=True, kw_only=True)
class DealPage(Page):
    """A deal: what stands, what is next and whose turn it is, and everything that belongs to it."""

    template = "deals/room.html"
    has_script = True
    version: str
    deal: DealAnswer
    title: str
    slug: str
    other: str
    """The name of the other party; empty while it is not to be known."""
    may_act: bool
    offers: Sequence[OfferShown]
    draft: DraftShown | None
    papers: Sequence[PaperShown]
    files: Sequence[DealFileAnswer] | None
    """None while the data room is closed to the reader."""
    viewings: Sequence[DealViewingAnswer]
    events: Sequence[DealEventAnswer]
    done: str = ""
    refused: str = ""

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"/deals/{self.deal.id}"

    @property
    def follows(self) -> str:
        """Where the page is told that something moved."""
        return f"{self.address}/events?seen={self.version}"

    @property
    def steps(self) -> Sequence[str]:
        """The steps of every deal."""
        return words.steps()

    @property
    def step(self) -> int:
        """At which of them it is; 0 when it ended before the closing."""
        return words.step(self.deal.stage)

    @property
    def stage(self) -> str:
        """How far it is, in words."""
        return words.stage(self.deal.stage)

    @property
    def turn(self) -> ShownState:
        """Whose turn it is."""
        deal = self.deal
        return words.turn_of(deal.turn, deal.role, deal.stage, paused=deal.paused)

    @property
    def next(self) -> str:
        """What happens next."""
        return _(words.NEXT.get(self.deal.stage, ""))

    @property
    def lapse(self) -> str:
        """What happens when nobody moves."""
        return _(words.LAPSES.get(self.deal.due_event or "", ""))

    @property
    def moves(self) -> Sequence[tuple[str, MoveWords]]:
        """What the reader can do now, what goes on before what ends."""
        if not self.may_act:
            return ()
        found = [(name, words.MOVES[name]) for name in self.deal.allowed if name in words.MOVES]
        return sorted(found, key=lambda one: one[1].is_end)

    def may(self, event: str) -> bool:
        """Whether the reader can make a move now."""
        return self.may_act and event in self.deal.allowed

    @property
    def price(self) -> str:
        """What was agreed."""
        return amount(self.deal.price)

    @property
    def may_offer(self) -> bool:
        """Whether the reader can make the first or another offer."""
        deal = self.deal
        is_open = any(one.is_open and one.offer.status.startswith("PENDING") for one in self.offers)
        is_theirs = deal.role == Side.BUYER and deal.stage == DealStage.NDA_SIGNED
        return self.may_act and is_theirs and not is_open and not deal.paused

    @property
    def to_sign(self) -> Sequence[PaperShown]:
        """The documents that wait for the reader's signature."""
        if not self.may_act or self.deal.role == "operator":
            return ()
        return [one for one in self.papers if one.is_open and not one.signed_by_reader]

    @property
    def wanted_papers(self) -> Mapping[str, str]:
        """The documents that can be put before both parties now."""
        deal = self.deal
        if not self.may_act or deal.role == "operator" or any(one.is_open for one in self.papers):
            return {}
        is_fast = len(deal.fast_track) == BOTH
        wanted = {
            DealStage.NDA_PENDING: ("NDA",),
            DealStage.UNDER_OFFER: ("APA",) if is_fast else ("LOI",),
            DealStage.DUE_DILIGENCE: ("APA",),
        }.get(DealStage(deal.stage), ())
        return {name: _(words.PAPERS[name]) for name in wanted}

    @property
    def file_kinds(self) -> dict[str, str]:
        """What a file can be about."""
        return {name: _(said) for name, said in DOCUMENT_KINDS.items()}

    def kind_of(self, file: DealFileAnswer) -> str:
        """Say what a file is about."""
        return _(DOCUMENT_KINDS[file.kind])

    def looked_into(self, item: DiligenceItemAnswer) -> str:
        """Say what the buyer looks into before the purchase contract."""
        return _(words.DILIGENCE[item.id]) if item.id in words.DILIGENCE else item.title

    def happened(self, event: DealEventAnswer) -> str:
        """Say what a line of the ledger tells."""
        return words.happened(event.event)

    def actor(self, event: DealEventAnswer) -> str:
        """Say who did it."""
        return _(words.ACTORS[event.actor])
