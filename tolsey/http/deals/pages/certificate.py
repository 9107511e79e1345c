"""The certificate of a signed document: who signed what and when, and how anybody checks it.

For the parties, with everything that happened; and for whoever has a link of theirs, with masked names
and no events (rules/marketplace#evidence).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
from quart import Blueprint, Response, request

from tolsey.actors.listing.deals.signatures.chain import signed_by
from tolsey.actors.refusals import NotFound
from tolsey.http.deals.evidence import routes as evidence
from tolsey.http.deals.evidence.answers import SignatureCheckAnswer
from tolsey.http.deals.pages import words
from tolsey.http.layout.answers import answer_with_pages, shown
from tolsey.http.layout.catalogue import _, marked
from tolsey.http.layout.templates import Page
from tolsey.http.web import limits, policies
from tolsey.http.web.access import page, public
from tolsey.storage.records.selling.deals import LegalSignature, Side, SignatureStatus

routes = Blueprint("certificates", __name__, url_prefix="/signatures/<signature_id>")
answer_with_pages(routes)

SAID: Final = {
    "requested": marked("Put before both parties"),
    "viewed": marked("Opened"),
    "signed": marked("Signed"),
    "completed": marked("Signed at its provider"),
}
"""What the lines of a chain that was completed tell."""


@dataclass(frozen=True, slots=True)
class Signer:
    """Who signed for a party; what only the parties see is empty for others."""

    side: str
    name: str
    at: str
    how: str
    ip: str = ""
    user_agent: str = ""


@dataclass(frozen=True, slots=True)
class ChainLine:
    """What happened to a document, and the fingerprint of the line that says so."""

    seq: int
    what: str
    who: str
    at: str
    hash: str


@dataclass(frozen=True, kw_only=True)
class CertificatePage(Page):
    """What proves a signature, to people."""

    template = "deals/certificate.html"
    signature: LegalSignature
    check: SignatureCheckAnswer
    is_party: bool
    token: str
    link: str = ""
    """The link that was just made, shown this once."""

    @property
    def name(self) -> str:
        """What the document is called."""
        return _(words.PAPERS[self.signature.document_type])

    @property
    def broken(self) -> str:
        """Why it is not what was written; empty where it is."""
        found = self.check.first_break
        return f"{found.name} {found.why}" if found is not None else ""

    @property
    def command(self) -> str:
        """What checks the bundle on a machine of one's own."""
        return f"tolsey verify-bundle {self.signature.id}.zip"

    @property
    def program(self) -> str:
        """Where programs read the same."""
        path = f"/api/marketplace/signatures/{self.signature.id}/verify"
        return f"{path}?token={self.token}" if self.token else path

    @property
    def signers(self) -> Sequence[Signer]:
        """Who signed, in the words of the chain where the caller may read it."""
        said = {one["actor"]["role"]: one for one in self._lines() if "name" in one["data"]}
        whole = signed_by(self.signature)
        found = []
        for one in self.check.signers:
            data: dict[str, Any] = said.get(one.role, {}).get("data", {})
            found.append(
                Signer(
                    side=_("For the buyer") if one.role == Side.BUYER else _("For the seller"),
                    name=whole[Side(one.role)]["name"] if self.is_party else one.name,
                    at=whole[Side(one.role)]["signedAt"],
                    how=self._how(data),
                    ip=data.get("ip", ""),
                    user_agent=data.get("userAgent", ""),
                )
            )
        return found

    def _how(self, data: dict[str, Any]) -> str:
        if self.signature.provider != "PLATFORM":
            return _("At %(provider)s") % {"provider": self.signature.provider}
        if "consentVersion" in data:
            return _("Typed name, signed in, consent %(version)s") % {
                "version": data["consentVersion"]
            }
        return _("Typed name, signed in")

    @property
    def chain(self) -> Sequence[ChainLine]:
        """What happened to the document; nothing of it for strangers."""
        names = {"buyer": _("Buyer"), "seller": _("Seller")}
        return [
            ChainLine(
                seq=event.seq,
                what=happened(line["type"]),
                who=names.get(line["actor"]["role"], _("Service")),
                at=line["at"],
                hash=event.hash,
            )
            for event, line in zip(self.check.events, self._lines(), strict=True)
        ]

    def _lines(self) -> list[dict[str, Any]]:
        return [orjson.loads(event.body) for event in self.check.events]


def happened(what: str) -> str:
    """Say what a line tells; what has no words yet by its own name."""
    return _(SAID[what]) if what in SAID else what


@routes.get("")
@public
@limits.limited(policies.SIGNATURE_CHECKS)
async def show_certificate(signature_id: str) -> Response:
    """Show what proves a signature, to its parties and to who has a link."""
    return shown(await _page(signature_id, request.args.get("token", "")[:100]))


@routes.post("/share")
@page
async def share_certificate(signature_id: str) -> Response:
    """Make a link by which a stranger may look at the certificate for 30 days, and show it."""
    made, _status = await evidence.share_signature(signature_id)
    token = made.url.rpartition("token=")[2]
    base = made.url.partition("/api/")[0]
    return shown(
        await _page(signature_id, "", link=f"{base}/signatures/{signature_id}?token={token}")
    )


async def _page(signature_id: str, token: str, link: str = "") -> CertificatePage:
    signature, is_party = await evidence.shown_to(signature_id, token)
    if signature.status is not SignatureStatus.SIGNED:
        raise NotFound(
            _(
                "The certificate isn't available until all parties have signed this document. Wait"
                " for the missing signatures."
            )
        )
    return CertificatePage(
        signature=signature,
        check=await evidence.checked(signature, is_party=is_party),
        is_party=is_party,
        token="" if is_party else token,
        link=link,
    )
