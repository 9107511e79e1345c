"""The page on which a document is read and signed, with its fingerprint and its chain beside it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from quart import Blueprint, Response

from tolsey.actors.listing.deals.signatures.chain import signed_by
from tolsey.actors.refusals import NotFound, Refusal
from tolsey.http.answers.market.deals import LegalSignatureAnswer
from tolsey.http.deals import signing_routes
from tolsey.http.deals.evidence import bundle, stored
from tolsey.http.deals.pages import words
from tolsey.http.deals.pages.room import deal_page, listing_of_deal, may_act
from tolsey.http.deals.parties import Party, signature_of
from tolsey.http.deals.signing_routes import Declined, GivenSignature, WantedSignature
from tolsey.http.layout import forms
from tolsey.http.layout.answers import answer_with_pages, filled_again, sent_on, sentence, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.forms import Filled, Misfilled
from tolsey.http.layout.templates import Page
from tolsey.http.layout.words import money
from tolsey.http.web.access import page
from tolsey.http.web.context import service
from tolsey.storage.records.selling.deals import LegalSignature, Side

routes = Blueprint("deal_papers", __name__, url_prefix="/deals/<deal_id>/papers")
answer_with_pages(routes)


@dataclass(frozen=True, kw_only=True)
class SignPage(Page):
    """A document with its text in view: who signed it, and the form that signs it."""

    template = "deals/sign.html"
    has_frame = True
    deal_id: str
    title: str
    role: str
    answer: LegalSignatureAnswer
    lines: int
    """How many lines its chain has."""
    broken: str
    """Why it is not what was written; empty where it is."""
    may_sign: bool
    filled: Filled = field(default_factory=Filled)

    @property
    def name(self) -> str:
        """What it is called."""
        return _(words.PAPERS[self.answer.document_type])

    @property
    def state(self) -> tuple[str, str]:
        """The tone and the words of how far it is signed."""
        tone, said = words.PAPER_STATES[self.answer.status]
        return tone, _(said)

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"/deals/{self.deal_id}/papers/{self.answer.id}"

    @property
    def text(self) -> str:
        """Where the exact text is."""
        return f"/api/marketplace/signatures/{self.answer.id}/document"

    @property
    def signers(self) -> Sequence[tuple[str, object]]:
        """Who signed, and when; None for a party that has not."""
        known = {one.role: one.signed_at for one in self.answer.signers}
        names = {Side.BUYER: _("The buyer"), Side.SELLER: _("The seller")}
        return [
            (_("You") if side == self.role else names[side], known.get(side.value)) for side in Side
        ]

    @property
    def grouped(self) -> str:
        """The fingerprint in groups of eight, for people who compare it."""
        digest = self.answer.document_sha256
        return " ".join(digest[at : at + 8] for at in range(0, len(digest), 8))

    @property
    def figures(self) -> Sequence[tuple[str, str]]:
        """The verified revenue that the document names, and that of the letter of intent."""
        named = self.answer.metrics
        if named is None:
            return []
        found = [(_("Verified revenue, 30 days"), named.figures)]
        if named.agreed is not None:
            found.append((_("In the letter of intent"), named.agreed))
        return [
            (title, money(one.revenue30d, one.currency) or _("Not verified"))
            for title, one in found
        ]


@routes.post("")
@page
async def ask_for_signatures(deal_id: str) -> Response:
    """Put a document before both parties, and go on to it."""
    try:
        wanted = forms.read(WantedSignature, await forms.sent())
        made, _status = await signing_routes.request_signature(deal_id, data=wanted)
    except (Misfilled, Refusal) as wrong:
        said = sentence(wrong) if isinstance(wrong, Refusal) else forms.unreadable()
        return shown(await deal_page(deal_id, refused=said), refusal=wrong)
    return sent_on(f"/deals/{deal_id}/papers/{made.id}")


@routes.get("/<signature_id>")
@page
async def show_paper(deal_id: str, signature_id: str) -> Response:
    """Show a document to be signed, or as it was signed."""
    return shown(await _page(deal_id, signature_id))


@routes.post("/<signature_id>")
@page
async def sign_paper(deal_id: str, signature_id: str) -> Response:
    """Sign what was shown, and go back to the deal."""
    values = await forms.sent()
    said: dict[str, Any] = {
        name: values.get(name, "") for name in ("typedName", "consentVersion", "documentSha256")
    }
    said |= {name: True for name in ("consent", "revenueAcknowledged") if values.get(name) == "yes"}
    try:
        given = forms.read(GivenSignature, said)
        await signing_routes.sign_document(signature_id, data=given)
    except (Misfilled, Refusal) as wrong:
        again = await _page(deal_id, signature_id, filled_again(values, wrong))
        return shown(again, refusal=wrong)
    return sent_on(f"/deals/{deal_id}?done=signed")


@routes.post("/<signature_id>/<any(decline, void):verb>")
@page
async def end_paper(deal_id: str, signature_id: str, verb: str) -> Response:
    """Refuse to sign, or take back what one asked for; both need a reason."""
    values = await forms.sent()
    act = signing_routes.decline_document if verb == "decline" else signing_routes.void_document
    try:
        await act(signature_id, data=forms.read(Declined, {"reason": values.get("reason", "")}))
    except (Misfilled, Refusal) as wrong:
        again = await _page(deal_id, signature_id, filled_again(values, wrong))
        return shown(again, refusal=wrong)
    return sent_on(f"/deals/{deal_id}?done=moved")


async def _page(deal_id: str, signature_id: str, filled: Filled | None = None) -> SignPage:
    party, signature = await _paper(deal_id, signature_id)
    answer = await signing_routes.get_signature(signature_id)
    running = service()
    kept = await bundle.evidence_of(running.database, signature)
    broken = await stored.first_break(kept, running.vault, running.settings.base_url)
    return SignPage(
        deal_id=deal_id,
        title=(await listing_of_deal(party)).listing.title,
        role=party.role,
        answer=answer,
        lines=len(kept.events),
        broken=f"{broken.name} {broken.why}" if broken is not None else "",
        may_sign=may_act(party)
        and "sign" in answer.allowed
        and party.role not in signed_by(signature),
        filled=filled or Filled(),
    )


async def _paper(deal_id: str, signature_id: str) -> tuple[Party, LegalSignature]:
    party, signature = await signature_of(signature_id)
    if signature.deal_id != deal_id:
        raise NotFound(
            _(
                "This document doesn't exist, or you don't have access to it. Check the link or the"
                " id."
            )
        )
    return party, signature
