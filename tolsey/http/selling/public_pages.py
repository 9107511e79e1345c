"""A listing for everyone: what is proven of it, what its seller says, and the page that lets anyone check."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from urllib.parse import quote

import orjson
from quart import Blueprint, Response

from tolsey.actors.listing.verification.transitions import Badge
from tolsey.http.answers.market.selling import PublicListingAnswer, SignedVerificationAnswer
from tolsey.http.layout import forms
from tolsey.http.layout.answers import answer_with_pages, sent_on, shown
from tolsey.http.layout.catalogue import _
from tolsey.http.layout.templates import Page
from tolsey.http.layout.words import money, whole_money
from tolsey.http.market import watching
from tolsey.http.market.visitors import Visitor, visitor_of
from tolsey.http.selling import badge as badges
from tolsey.http.selling.attestation import badge, signed, verification_of
from tolsey.http.selling.badge import Shown, Words, notes_of
from tolsey.http.selling.listing_views import to_anyone
from tolsey.http.selling.public import listing_at, noted
from tolsey.http.web.access import identify, page, public
from tolsey.http.web.context import now, service
from tolsey.storage.selling.listings import ListingView

KEYS: Final = "/.well-known/verification-keys.json"
RECIPE: Final = """\
# pip install cryptography
import base64, json, urllib.request
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

def read(address): return json.load(urllib.request.urlopen(address))
def raw(text): return base64.urlsafe_b64decode(text + "==")

document = read("%(document)s")
keys = read("%(keys)s")["keys"]
signature = document.pop("signature")
signed = {name: signature[name] for name in ("keyId", "listing", "signedAt")}
signed["verification"] = document
text = json.dumps(signed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
key = next(one for one in keys if one["kid"] == signature["keyId"])
Ed25519PublicKey.from_public_bytes(raw(key["x"])).verify(raw(signature["value"]), text.encode())
print("The signature is right.")"""

routes = Blueprint("listing_pages", __name__)
answer_with_pages(routes)


@dataclass(frozen=True, kw_only=True)
class ListingPage(Page):
    """A listing as everyone sees it."""

    template = "selling/public.html"
    answer: PublicListingAnswer
    shown: Shown
    base_url: str
    visitor: Visitor | None = None
    """What whoever is signed in can do about it."""

    @property
    def is_for_sale(self) -> bool:
        """Whether a buyer can ask for access now."""
        return self.answer.status == "ACTIVE" and self.answer.asking_price is not None

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"{self.base_url}/listings/{quote(self.answer.slug)}"

    @property
    def preview(self) -> str | None:
        """The picture that stands beside a link to the page; none without a badge."""
        if self.shown.badge is Badge.NONE:
            return None
        return f"{self.base_url}/api/public/listings/{quote(self.answer.slug)}/og.png"

    @cached_property
    def words(self) -> Words:
        """What the badge says."""
        return badges.words(self.shown)

    @property
    def is_green(self) -> bool:
        """Whether the numbers are of now."""
        return self.shown.badge is Badge.GREEN

    @property
    def has_numbers(self) -> bool:
        """Whether there is a badge to show."""
        return self.shown.badge is not Badge.NONE

    @property
    def price(self) -> str:
        """What the seller asks."""
        asked = self.answer.asking_price
        return whole_money(asked.amount, asked.currency) if asked else ""

    @property
    def figures(self) -> Sequence[tuple[str, str, bool]]:
        """Each figure: what it is, how much, and whether it is proven."""
        proof, said = self.answer.verification, self.answer.self_reported
        proven = {
            _("Revenue, 30 days"): "revenue30d",
            _("Annualised"): "annualised",
            _("Recurring, monthly"): "mrr",
        }
        found = [(title, badges.metric(proof, name), True) for title, name in proven.items()]
        reported = {
            _("Revenue, 12 months"): said.ttm_revenue,
            _("Profit, 12 months"): said.ttm_profit,
        }
        for title, amount in reported.items():
            written = money(amount.amount, amount.currency) if amount else ""
            found.append((title, written, False))
        if said.hours_per_week is not None:
            found.append((_("Hours a week"), f"{said.hours_per_week:g}", False))
        if said.headcount is not None:
            found.append((_("People who work there"), str(said.headcount), False))
        return [one for one in found if one[1]]

    @property
    def notes(self) -> Sequence[str]:
        """List in words what a reviewer looks at, and what the numbers leave out."""
        return notes_of(self.answer.verification.flags)


@dataclass(frozen=True, kw_only=True)
class CheckPage(Page):
    """The page that checks a signed document in the reader's browser, with the published keys alone."""

    template = "selling/check.html"
    has_script = True
    title: str
    document: SignedVerificationAnswer
    base_url: str
    keys = KEYS

    @property
    def slug(self) -> str:
        """The listing's address, which the document must name."""
        return self.document.signature.listing

    @property
    def written(self) -> str:
        """The document as it is checked: what stands on the page, and nothing else."""
        return orjson.dumps(
            self.document.model_dump(mode="json"), option=orjson.OPT_INDENT_2
        ).decode()

    @property
    def recipe(self) -> str:
        """How the document is checked without us, on a machine of the reader's."""
        address = f"{self.base_url}/api/public/listings/{quote(self.slug)}/verification"
        return RECIPE % {"document": address, "keys": self.base_url + KEYS}


@routes.get("/listings/<slug>")
@public
async def show_listing(slug: str) -> Response:
    """Show a listing to everyone."""
    signed_in, view = await identify(), await listing_at(slug)
    await noted(view)
    return shown(listing_page(view, await visitor_of(view) if signed_in else None))


@routes.post("/listings/<slug>/watch")
@page
async def watch(slug: str) -> Response:
    """Watch a listing, or no longer."""
    view = await listing_at(slug)
    if (await forms.sent()).get("watch") == "no":
        await watching.unwatch_listing(view.listing.id)
    else:
        await watching.watch_listing(view.listing.id)
    return sent_on(f"/listings/{quote(slug)}")


def listing_page(view: ListingView, visitor: Visitor | None) -> ListingPage:
    """Put the page of a listing together, for whoever visits it."""
    at = now()
    return ListingPage(
        answer=to_anyone(view, at),
        shown=Shown(badge(view, at), verification_of(view, at), at),
        base_url=service().settings.base_url,
        visitor=visitor,
    )


@routes.get("/listings/<slug>/check")
@public
async def check_listing(slug: str) -> Response:
    """Show the signed document, and check it in the reader's browser."""
    await identify()
    view = await listing_at(slug)
    return shown(
        CheckPage(
            title=view.listing.title,
            document=signed(view, service().vault, now()),
            base_url=service().settings.base_url,
        )
    )
