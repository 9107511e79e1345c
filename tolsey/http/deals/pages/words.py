"""What the stages, moves and happenings of deals are called on pages."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tolsey.http.layout.catalogue import _, marked
from tolsey.http.layout.standings import ShownState, Tone
from tolsey.storage.records.selling.deals import DealStage, OfferStatus, Side

Stage = DealStage

STAGES: Final[Mapping[str, str]] = {
    Stage.INQUIRY: marked("Access asked for"),
    Stage.NDA_PENDING: marked("NDA to be signed"),
    Stage.NDA_SIGNED: marked("Offers"),
    Stage.UNDER_OFFER: marked("Offer accepted"),
    Stage.LOI_SIGNED: marked("Letter of intent signed"),
    Stage.DUE_DILIGENCE: marked("Due diligence"),
    Stage.APA_SIGNED: marked("Purchase contract signed"),
    Stage.ESCROW_FUNDED: marked("Money in escrow"),
    Stage.TRANSFERRING: marked("Handover"),
    Stage.CLOSED: marked("Closed"),
    Stage.DISPUTED: marked("In dispute"),
    Stage.REFUND_REQUESTED: marked("Money asked back"),
    Stage.REFUNDED: marked("Money given back"),
    Stage.DECLINED: marked("Declined"),
    Stage.WITHDRAWN: marked("Withdrawn"),
    Stage.EXPIRED: marked("Lapsed"),
    Stage.CANCELLED: marked("Cancelled"),
    Stage.CLOSED_LOST: marked("The listing is gone"),
}
RAIL: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (marked("Access"), (Stage.INQUIRY,)),
    (marked("NDA"), (Stage.NDA_PENDING,)),
    (marked("Offer"), (Stage.NDA_SIGNED,)),
    (marked("Letter of intent"), (Stage.UNDER_OFFER,)),
    (marked("Due diligence"), (Stage.LOI_SIGNED, Stage.DUE_DILIGENCE)),
    (marked("Escrow"), (Stage.APA_SIGNED,)),
    (marked("Handover"), (Stage.ESCROW_FUNDED, Stage.TRANSFERRING, Stage.DISPUTED)),
    (marked("Closed"), (Stage.CLOSED, Stage.REFUND_REQUESTED, Stage.REFUNDED)),
)
"""The way of a deal as its parties walk it; what ended before stands nowhere on it."""
NEXT: Final[Mapping[str, str]] = {
    Stage.INQUIRY: marked("The seller lets the buyer in, or refuses."),
    Stage.NDA_PENDING: marked("Both sign the NDA. It stands under Documents."),
    Stage.NDA_SIGNED: marked("The buyer makes an offer; whoever got one answers it."),
    Stage.UNDER_OFFER: marked("The letter of intent is drawn up and signed by both."),
    Stage.LOI_SIGNED: marked("The seller fills the data room and begins the due diligence."),
    Stage.DUE_DILIGENCE: marked(
        "The buyer looks into each thing of the list; then the purchase contract is drawn up and signed by both."
    ),
    Stage.APA_SIGNED: marked(
        "The seller names the escrow, the buyer pays into it and says so, and the seller confirms it."
    ),
    Stage.ESCROW_FUNDED: marked("The seller begins the handover."),
    Stage.TRANSFERRING: marked(
        "The seller hands each thing over, the buyer accepts it, and the seller closes the deal."
    ),
    Stage.CLOSED: marked(
        "The business is sold. For seven days the buyer can ask for the money back."
    ),
    Stage.DISPUTED: marked("An operator of the service decides, and tells both why."),
    Stage.REFUND_REQUESTED: marked(
        "The seller says what has come back, and gives the money back; else an operator decides."
    ),
}
"""What happens in a stage, whoever reads it; a deal that is over has nothing next."""
LAPSES: Final[Mapping[str, str]] = {
    "timer.14d": marked("If nobody moves, the deal lapses then."),
    "timer.30d": marked(
        "If nothing is signed, the deal lapses then and the business is for sale again."
    ),
    "timer.21d_unfunded": marked("If the money is not in escrow, the deal is cancelled then."),
    "timer.72h": marked("If the seller does not answer, an operator decides then."),
    "exclusivity.lapsed": marked("The exclusivity ends then, and other buyers may go on."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveWords:
    """A move on a page: its button, what happens when it is pressed, and what has to be said with it."""

    label: str
    says: str
    fields: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    is_end: bool = False
    """Whether it ends the deal or takes something back."""


MOVES: Final[Mapping[str, MoveWords]] = {
    "access.approve": MoveWords(
        label=marked("Let them in"),
        says=marked(
            "The NDA is put before both of you. Once both signed it, the buyer sees the name, the books and the data room."
        ),
    ),
    "access.decline": MoveWords(
        label=marked("Refuse access"),
        says=marked("The buyer is told your reason, and the talks end."),
        fields=("reason",),
        is_end=True,
    ),
    "offer.reopen": MoveWords(
        label=marked("Open the price again"),
        says=marked(
            "The accepted offer ends, and either of you may offer anew. The business is on the market again."
        ),
        is_end=True,
    ),
    "diligence.open": MoveWords(
        label=marked("Begin the due diligence"),
        says=marked(
            "The buyer sees the whole data room, and looks into a list of things before the purchase contract."
        ),
    ),
    "fasttrack.agree": MoveWords(
        label=marked("Agree to the fast track"),
        says=marked(
            "When both agree, you go from the offer to the purchase contract at once, without letter and due diligence."
        ),
    ),
    "exclusivity.propose": MoveWords(
        label=marked("Propose a later end of the exclusivity"),
        says=marked("It counts when the other party agrees. At most 60 days ahead."),
        fields=("until",),
    ),
    "exclusivity.agree": MoveWords(
        label=marked("Agree to the later end"),
        says=marked("The exclusivity then lasts as long as the other party proposed."),
    ),
    "escrow.open": MoveWords(
        label=marked("Name the escrow"),
        says=marked(
            "Give the number that the escrow provider knows it by. Its amount must be that of the purchase contract."
        ),
        fields=("escrowId",),
    ),
    "funding.confirm": MoveWords(
        label=marked("Say that you have paid"),
        says=marked("You say that the whole price is in escrow. The seller sees it."),
    ),
    "escrow.funded": MoveWords(
        label=marked("Say that the money is in escrow"),
        says=marked(
            "From then on the handover can begin. Where the buyer has not confirmed it, say how you know."
        ),
        optional=("evidence",),
    ),
    "transfer.start": MoveWords(
        label=marked("Begin the handover"),
        says=marked("The list of what is handed over opens, as the purchase contract froze it."),
    ),
    "deal.close": MoveWords(
        label=marked("Close the deal"),
        says=marked(
            "The business is sold: its listing, its badge and the talks with all others end. For seven days the buyer can ask for the money back."
        ),
        is_end=True,
    ),
    "withdraw": MoveWords(
        label=marked("End the talks"),
        says=marked("You step back from this deal. The NDA stays in force. This cannot be undone."),
        fields=("reason",),
        is_end=True,
    ),
    "decline": MoveWords(
        label=marked("End the talks"),
        says=marked(
            "You stop selling to this buyer, who is told your reason. This cannot be undone."
        ),
        fields=("reason",),
        is_end=True,
    ),
    "cancel.propose": MoveWords(
        label=marked("Propose to cancel"),
        says=marked("The deal is cancelled when the other party agrees within seven days."),
        optional=("reason",),
        is_end=True,
    ),
    "cancel.agree": MoveWords(
        label=marked("Agree to cancel"),
        says=marked("The deal is cancelled at once, and the business is for sale again."),
        is_end=True,
    ),
    "admin.cancel": MoveWords(
        label=marked("Cancel the deal"),
        says=marked("Both parties are told the reason, and the business is for sale again."),
        fields=("reason",),
        is_end=True,
    ),
    "dispute.open": MoveWords(
        label=marked("Open a dispute"),
        says=marked(
            "The deal stands still, and an operator decides. Tell the escrow provider too: the service holds no money."
        ),
        fields=("reason", "evidence"),
        is_end=True,
    ),
    "dispute.resume": MoveWords(
        label=marked("Go on with the handover"),
        says=marked("The dispute ends, and both parties read your decision."),
        fields=("reason",),
    ),
    "dispute.refund": MoveWords(
        label=marked("Give the money back"),
        says=marked(
            "The deal ends. Say it only when escrow and business are back where they were."
        ),
        fields=("reason", "escrowReturned", "assetsReturned"),
        is_end=True,
    ),
    "dispute.release": MoveWords(
        label=marked("Give the money to the seller"),
        says=marked("The deal closes. Say it only when the escrow was released."),
        fields=("reason", "escrowReleased"),
        is_end=True,
    ),
    "escrow.refunded": MoveWords(
        label=marked("The escrow went back"),
        says=marked("The provider gave the buyer the money back: the deal ends."),
        fields=("reason",),
        is_end=True,
    ),
    "refund.request": MoveWords(
        label=marked("Ask for the money back"),
        says=marked(
            "Once, within seven days of the closing. The seller has 72 hours to answer; then an operator decides."
        ),
        fields=("refundReason", "items"),
        is_end=True,
    ),
    "refund.accept": MoveWords(
        label=marked("Give the money back"),
        says=marked("Say which things have come back: all of the list. The deal ends then."),
        fields=("returns",),
        is_end=True,
    ),
    "refund.deny": MoveWords(
        label=marked("Refuse to give the money back"),
        says=marked("The deal stays closed, and both parties read your decision."),
        fields=("reason",),
        is_end=True,
    ),
    "refund.withdraw": MoveWords(
        label=marked("Keep the business after all"),
        says=marked("You no longer ask for the money back. You cannot ask again."),
        is_end=True,
    ),
}
"""Each move of a person but those of one thing of a list, whose buttons stand beside it."""
OF_ITEMS: Final = ("diligence.resolve", "transfer.deliver", "transfer.confirm")

REJECTION: Final = MoveWords(
    label=marked("Reject it"),
    says=marked(
        "The seller reads why, and hands it over again. The deal closes by itself no more until you accept it."
    ),
    fields=("reason",),
    is_end=True,
)

REFUND_REASONS: Final[Mapping[str, str]] = {
    "revenue_differs": marked("The verified revenue differs"),
    "asset_missing": marked("Something that was sold is missing"),
    "undisclosed_liability": marked("There is a debt that was not told"),
}
VERBS: Final[Mapping[str, MoveWords]] = {
    "accept": MoveWords(
        label=marked("Accept the offer"),
        says=marked(
            "The price is frozen, and the letter of intent can be drawn up. Talks with other buyers go on until both have signed it."
        ),
    ),
    "reject": MoveWords(
        label=marked("Refuse the offer"),
        says=marked("The offer ends. The talks go on, and another one may be made."),
        is_end=True,
    ),
    "withdraw": MoveWords(
        label=marked("Take the offer back"),
        says=marked("The offer ends. You may make another one."),
        is_end=True,
    ),
}
OFFER_STATES: Final[Mapping[str, tuple[Tone, str]]] = {
    OfferStatus.PENDING: ("wait", marked("Waits for an answer")),
    OfferStatus.PENDING_COUNTER: ("wait", marked("Waits for an answer")),
    OfferStatus.ACCEPTED: ("good", marked("Accepted")),
    OfferStatus.REJECTED: ("idle", marked("Refused")),
    OfferStatus.WITHDRAWN: ("idle", marked("Taken back")),
    OfferStatus.EXPIRED: ("idle", marked("Lapsed")),
    OfferStatus.COUNTERED: ("idle", marked("Answered by a counter-offer")),
    OfferStatus.SUPERSEDED: ("idle", marked("Opened again")),
}
OFFER_TYPES: Final[Mapping[str, str]] = {
    "cash": marked("All in cash"),
    "seller_financing": marked("A part later, lent by the seller"),
    "earnout": marked("A part later, by how it does"),
    "mixed": marked("Mixed"),
}
INVENTORY: Final[Mapping[str, str]] = {
    "included": marked("In the price"),
    "at_cost": marked("At cost, on top"),
}
PAPERS: Final[Mapping[str, str]] = {
    "NDA": marked("NDA"),
    "LOI": marked("Letter of intent"),
    "APA": marked("Purchase contract"),
}
DILIGENCE: Final[Mapping[str, str]] = {
    "revenue": marked("Verified revenue and its sources"),
    "accounts": marked("Accounts, contracts and suppliers"),
    "assets": marked("The assets that are sold, and who owns them"),
    "liabilities": marked("Debts, disputes and open orders"),
}
PAPER_STATES: Final[Mapping[str, tuple[Tone, str]]] = {
    "PENDING": ("wait", marked("To be signed")),
    "VIEWED": ("wait", marked("To be signed")),
    "SIGNED": ("good", marked("Signed by both")),
    "DECLINED": ("bad", marked("Refused")),
    "EXPIRED": ("idle", marked("Lapsed")),
    "VOIDED": ("idle", marked("Taken back")),
    "FAILED": ("bad", marked("Failed")),
}
ACTORS: Final[Mapping[str, str]] = {
    "B": marked("Buyer"),
    "S": marked("Seller"),
    "X": marked("The service"),
    "E": marked("Escrow provider"),
    "A": marked("Operator"),
}
EVENTS: Final[Mapping[str, str]] = {
    "access.request": marked("Asked for access"),
    "access.approve": marked("Let the buyer in"),
    "access.decline": marked("Refused access"),
    "nda.signed_by_all": marked("Both signed the NDA"),
    "loi.signed_by_all": marked("Both signed the letter of intent"),
    "apa.signed_by_all": marked("Both signed the purchase contract"),
    "signature.requested": marked("Put a document before both parties"),
    "signature.ended": marked("A document was not signed"),
    "offer.submit": marked("Made an offer"),
    "offer.accepted": marked("An offer was accepted"),
    "offer.accept": marked("Accepted an offer"),
    "offer.reject": marked("Refused an offer"),
    "offer.withdraw": marked("Took an offer back"),
    "offer.counter": marked("Answered an offer"),
    "offer.counter_created": marked("Made a counter-offer"),
    "offer.timer": marked("An offer lapsed"),
    "offer.supersede": marked("The accepted offer was opened again"),
    "offer.reopen": marked("Opened the price again"),
    "diligence.open": marked("Began the due diligence"),
    "diligence.resolve": marked("Ticked off a thing of the due diligence"),
    "fasttrack.agree": marked("Agreed to the fast track"),
    "exclusivity.propose": marked("Proposed a later end of the exclusivity"),
    "exclusivity.agree": marked("Agreed to a later end of the exclusivity"),
    "exclusivity.lapsed": marked("The exclusivity ended"),
    "escrow.open": marked("Named the escrow"),
    "funding.confirm": marked("Said that it is paid"),
    "escrow.funded": marked("The money is in escrow"),
    "escrow.released": marked("The escrow was released"),
    "escrow.refunded": marked("The escrow went back"),
    "transfer.start": marked("Began the handover"),
    "transfer.deliver": marked("Handed a thing over"),
    "transfer.confirm": marked("Judged what was handed over"),
    "deal.close": marked("Closed the deal"),
    "withdraw": marked("Ended the talks"),
    "decline": marked("Ended the talks"),
    "cancel.propose": marked("Proposed to cancel"),
    "cancel.agree": marked("Agreed to cancel"),
    "admin.cancel": marked("Cancelled the deal"),
    "dispute.open": marked("Opened a dispute"),
    "dispute.resume": marked("Ended the dispute: the handover goes on"),
    "dispute.refund": marked("Ended the dispute: the money went back"),
    "dispute.release": marked("Ended the dispute: the money went to the seller"),
    "refund.request": marked("Asked for the money back"),
    "refund.accept": marked("Gave the money back"),
    "refund.deny": marked("Refused to give the money back"),
    "refund.withdraw": marked("Keeps the business after all"),
    "listing.gone": marked("The listing is gone"),
    "timer.14d": marked("Nobody moved for 14 days"),
    "timer.30d": marked("Nothing was signed for 30 days"),
    "timer.21d_unfunded": marked("The money did not come for 21 days"),
    "timer.72h": marked("The seller did not answer for 72 hours"),
    "file.added": marked("Put a file into the data room"),
}
ENDED: Final = (
    Stage.REFUNDED,
    Stage.DECLINED,
    Stage.WITHDRAWN,
    Stage.EXPIRED,
    Stage.CANCELLED,
    Stage.CLOSED_LOST,
)


def stage(name: str) -> str:
    """Say how far a deal is."""
    return _(STAGES[name])


def happened(event: str) -> str:
    """Say what happened to a deal; a happening that has no words yet by its own name."""
    return _(EVENTS[event]) if event in EVENTS else event


def turn_of(turn: str | None, role: str, stage_name: str, *, paused: bool) -> ShownState:
    """Say whose turn it is, to one of the parties or to an operator."""
    if paused:
        return ShownState("wait", _("Waits for another buyer"))
    if turn is None or stage_name in ENDED:
        return ShownState("good" if stage_name == Stage.CLOSED else "idle", stage(stage_name))
    if turn in (role, "both") and role != "operator":
        return ShownState("you", _("Your turn"))
    said = {
        Side.BUYER: _("Buyer's turn"),
        Side.SELLER: _("Seller's turn"),
        "operator": _("Your turn") if role == "operator" else _("An operator decides"),
        "both": _("Both parties' turn"),
    }
    is_own = turn == role == "operator"
    return ShownState("you" if is_own else "wait", said[turn])


def steps() -> list[str]:
    """Name the steps of a deal, in order."""
    return [_(name) for name, _stages in RAIL]


def step(stage_name: str) -> int:
    """Say at which of the steps a stage is, from 1; 0 for a deal that ended before its closing."""
    for number, (_name, stages) in enumerate(RAIL, 1):
        if stage_name in stages:
            return number
    return 0
