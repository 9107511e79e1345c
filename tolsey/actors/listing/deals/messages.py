"""What a listing is told and asked of its deals."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import ClassVar, Final

from tolsey.runtime.messages import Call, LaneName, Message, Patience
from tolsey.storage.records.selling.deals import (
    DealFile,
    DealOffer,
    DealThread,
    LegalSignature,
    OfferDraft,
)


class AboutDeal:
    """What falls due in a deal takes effect in order, where one of it keeps failing (rules/operators#quarantine)."""

    __slots__ = ()
    deal_id: str

    @property
    def about(self) -> str:
        """Name the thing."""
        return f"deal:{self.deal_id}"


@dataclass(frozen=True, kw_only=True)
class DealFields:
    """What whoever makes a move says with it; each move wants some of these and looks at no others."""

    reason: str | None = None
    evidence: str | None = None
    item: str | None = None
    items: tuple[str, ...] = ()
    verdict: str | None = None
    until: datetime | None = None
    escrow_id: str | None = None
    amount: int | None = None
    currency: str | None = None
    escrow_returned: bool = False
    escrow_released: bool = False
    assets_returned: bool = False


NO_FIELDS: Final = DealFields()


@dataclass(frozen=True, kw_only=True)
class OfferTerms:
    """What one party would agree to; `terms` and `contingencies` are JSON text."""

    amount: int
    currency: str
    type: str = "cash"
    terms: str = "{}"
    inventory: str = "included"
    contingencies: str = "[]"
    closing_by: date | None = None
    proof_of_funds: str | None = None
    message: str | None = None
    valid_until: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class DealView:
    """A deal as it stands, and what each may do next."""

    deal: DealThread
    offer: DealOffer | None
    """The one that is open or accepted, or the last."""
    paused: bool
    turn: str | None
    """Whose turn it is: `buyer`, `seller`, `both` or `operator`; None when it is over."""
    due_at: datetime | None
    """When time makes the next move, unless somebody does before."""
    due_event: str | None
    of_buyer: tuple[str, ...]
    of_seller: tuple[str, ...]
    of_operator: tuple[str, ...]
    offer_of_buyer: tuple[str, ...]
    """What each may do with the open offer."""
    offer_of_seller: tuple[str, ...]
    signature_id: str | None
    """The last document that was to be signed."""


@dataclass(frozen=True, kw_only=True)
class RequestAccess(Message[DealView]):
    """A buyer asks to see more; `may_sell` says whether the seller can be paid, for one who lets everyone in."""

    deal_id: str
    buyer_id: str
    by: str
    message: str | None
    may_sell: bool
    at: datetime


@dataclass(frozen=True, kw_only=True)
class AdvanceDeal(Message[DealView]):
    """Somebody makes a move of the deal machine: `actor` is its letter there."""

    deal_id: str
    event: str
    expected_stage: str | None
    actor: str
    by: str
    at: datetime
    fields: DealFields = NO_FIELDS
    may_sell: bool = True
    documents: tuple[str, ...] = ()
    """What the seller's files in the data room are about."""


@dataclass(frozen=True, kw_only=True)
class MakeOffer(Message[DealView]):
    """A buyer says what they would pay."""

    deal_id: str
    offer_id: str
    terms: OfferTerms
    by: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class AnswerOffer(Message[DealView]):
    """A party accepts, rejects, counters or withdraws an offer; `counter` is the child's id and terms."""

    deal_id: str
    offer_id: str
    verb: str
    side: str
    by: str
    at: datetime
    counter_id: str | None = None
    counter: OfferTerms | None = None


@dataclass(frozen=True, kw_only=True)
class DraftOfferReply(Message[OfferDraft]):
    """An agent of a party prepares the answer to an offer; nothing of the deal changes until a person sends it.

    `counter` has the terms as the API takes them, which `terms` says in the service's own words; `is_trial`
    asks whether it could be kept, and keeps nothing.
    """

    draft: OfferDraft
    terms: OfferTerms | None
    is_trial: bool
    at: datetime


@dataclass(frozen=True, kw_only=True)
class DiscardOfferDraft(Message[OfferDraft]):
    """A person of the party does not want what an agent prepared."""

    draft: OfferDraft
    by: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class AddDealFile(Message[DealView]):
    """A party puts a file, whose bytes are kept already, into a deal's data room."""

    file: DealFile
    actor: str
    at: datetime


@dataclass(frozen=True)
class ReadDeals(Message[Sequence[DealView]]):
    """Somebody looks at deals."""

    deal_ids: tuple[str, ...]
    at: datetime


@dataclass(frozen=True, kw_only=True)
class DealDue(AboutDeal, Message[None]):
    """The time of a deal's stage is over, unless it was moved meanwhile or stood still."""

    deal_id: str
    event: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class OfferDue(AboutDeal, Message[None]):
    """An offer is valid no longer."""

    deal_id: str
    offer_id: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class SignerFacts:
    """Whose browser it was, as far as the service saw it."""

    user_id: str
    side: str
    email_sha256: str
    session_sha256: str
    ip: str
    user_agent: str


@dataclass(frozen=True, kw_only=True)
class SignatureView:
    """A signature as it stands, with the deal that it moves."""

    signature: LegalSignature
    deal: DealView


@dataclass(frozen=True, kw_only=True)
class RequestSignature(Message[SignatureView]):
    """A party wants a document signed: its text was made of the deal as it was at `basis`, its ledger's head."""

    deal_id: str
    signature_id: str
    document_type: str
    provider: str
    hosted_url: str | None
    template_version: str
    document: str
    basis: str
    actor: str
    by: str
    at: datetime
    may_sell: bool = True
    figures: str | None = None
    """The verified figures that the document names, as JSON text."""
    agreed: str | None = None
    """Those of the letter of intent that was signed."""


@dataclass(frozen=True, kw_only=True)
class DrawUpNda(AboutDeal, Message[None]):
    """Draw up the NDA of a deal whose access an earlier release approved without one."""

    deal_id: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class ViewDocument(Message[SignatureView]):
    """A party opened the document."""

    deal_id: str
    signature_id: str
    signer: SignerFacts
    at: datetime


@dataclass(frozen=True, kw_only=True)
class SignDocument(Message[SignatureView]):
    """A party signs what it was shown: it types its name, consents, and says the hash of the text."""

    deal_id: str
    signature_id: str
    typed_name: str
    consent_version: str
    document_sha256: str
    signer: SignerFacts
    at: datetime
    may_sell: bool = True
    revenue_moved: bool = False
    """Whether the document says that revenue moved since the letter of intent."""
    acknowledged: bool = False


@dataclass(frozen=True, kw_only=True)
class EndSignature(Message[SignatureView]):
    """A party declines, or who asked for the signature takes it back: `event` is the machine's."""

    deal_id: str
    signature_id: str
    event: str
    reason: str
    side: str
    by: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class SignatureDue(AboutDeal, Message[None]):
    """Nobody, or not everybody, signed in time."""

    deal_id: str
    signature_id: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class EnvelopeSigner:
    """Who signed for a party at a provider, as the provider says it."""

    side: str
    name: str
    email_sha256: str
    signed_at: datetime


@dataclass(frozen=True, kw_only=True)
class CompleteEnvelope(Message[SignatureView]):
    """The e-signature provider says of a document, asked again, that everybody has signed it."""

    deal_id: str
    signature_id: str
    envelope_id: str
    document_sha256: str
    signers: tuple[EnvelopeSigner, ...]
    at: datetime
    may_sell: bool = True


@dataclass(frozen=True, kw_only=True)
class FollowEscrow(Message[DealView]):
    """The escrow provider says, asked again, how far a deal's transaction is."""

    deal_id: str
    escrow_id: str
    amount: int
    currency: str
    is_funded: bool
    is_released: bool
    at: datetime


@dataclass(frozen=True, kw_only=True)
class StoreHandedOver(Message[DealView]):
    """The commerce platform says, asked again, that the buyer of a deal owns the shop of its store."""

    deal_id: str
    store_id: str
    shop_domain: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class LookForOwner(Call[None]):
    """Find out whether the buyer owns a store's shop by now, if a deal is handing it over, and tell that deal."""

    lane: ClassVar[LaneName] = "platform"
    patience: ClassVar[Patience | None] = Patience(waits=(5.0, 60.0, 600.0), tries=4)

    store_id: str
    organization_id: str


@dataclass(frozen=True, kw_only=True)
class AskProvider(Call[None]):
    """Fetch again what a kept event of a deal's provider says, and tell the listing if it is so."""

    lane: ClassVar[LaneName] = "platform"
    patience: ClassVar[Patience | None] = Patience(waits=(5.0, 60.0, 600.0), tries=4)

    provider: str
    event_id: str


@dataclass(frozen=True, kw_only=True)
class SealDocument(Call[None]):
    """Make the PDF of a document that everybody has signed, and put the service's seal under it."""

    lane: ClassVar[LaneName] = "job"

    signature_id: str
    organization_id: str
