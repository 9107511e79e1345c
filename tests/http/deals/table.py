"""A seller, two buyers and a stranger around one listing, and what they do over HTTP."""

import hashlib
from dataclasses import dataclass
from typing import Any

import httpx

from tests.http.people import Person

MARKET = "/api/marketplace"
PRICE = {"amount": 2_000_000, "currency": "USD"}


@dataclass
class Table:
    """A seller, two buyers and a stranger, and a listing between them."""

    ann: Person
    ben: Person
    cleo: Person
    eve: Person
    store_id: str
    listing_id: str

    async def access(self, buyer: Person, **headers: str) -> httpx.Response:
        return await buyer.browser.post(
            f"{MARKET}/listings/{self.listing_id}/access",
            json={"organizationId": buyer.organization_id, "message": "Tell me more."},
            headers=headers,
        )

    async def advance(
        self,
        who: Person,
        deal: dict[str, Any],
        event: str,
        *,
        headers: dict[str, str] | None = None,
        **given: Any,
    ) -> httpx.Response:
        body = {"event": event, "expectedStage": deal["stage"], **given}
        path = f"{MARKET}/deals/{deal['id']}/advance"
        return await who.browser.post(path, json=body, headers=headers)

    async def sign(self, who: Person, signature_id: str, **changed: Any) -> httpx.Response:
        """Look at the document, hash what is shown, and sign that."""
        path = f"{MARKET}/signatures/{signature_id}"
        shown = await who.browser.get(f"{path}/document")
        wanted = (await who.browser.get(path)).json()
        body = {
            "typedName": who.email.split("@")[0].title(),
            "consent": True,
            "consentVersion": wanted["consentVersion"],
            "documentSha256": hashlib.sha256(shown.content).hexdigest(),
            **changed,
        }
        return await who.browser.post(path, json=body)

    async def deal(self, who: Person, id: str) -> dict[str, Any]:
        found = await who.browser.get(f"{MARKET}/deals/{id}")
        assert found.status_code == 200, found.text
        answer: dict[str, Any] = found.json()
        return answer


async def signed(table: Table, buyer: Person) -> dict[str, Any]:
    """Bring a buyer to the signed NDA."""
    asked = (await table.access(buyer)).json()
    await table.advance(table.ann, asked, "access.approve")
    deal = await table.deal(buyer, asked["id"])
    for who in (buyer, table.ann):
        given = await table.sign(who, deal["signatureId"])
        assert given.status_code == 200, given.text
    return await table.deal(buyer, asked["id"])
