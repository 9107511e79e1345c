"""The providers that deals are closed with: envelopes that are signed elsewhere, and transactions in escrow."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import httpx
import orjson

from tolsey.http.clients.certificates import trusted_certificates
from tolsey.http.clients.counted import CountedClient, Peer

TIMEOUT_SECONDS: Final = 10.0
COMPLETED: Final = "completed"


class ProviderAway(Exception):  # noqa: N818 - what the provider is
    """A provider could not be asked, or answered what nobody can read: it is asked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedEnvelope:
    """An envelope as its provider has it: `reference` is our signature's id."""

    id: str
    status: str
    reference: str
    document_sha256: str
    signers: tuple[tuple[str, str, str, datetime], ...]
    """Side, name, mail address and time of each who signed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EscrowTransaction:
    """A transaction as its provider has it: secured once the money is there, disbursed once the seller has it."""

    id: str
    amount: Decimal
    currency: str
    is_secured: bool
    is_disbursed: bool


class _Provider:
    """Asks one provider for what it has."""

    def __init__(self, peer: Peer, url: str, **options: Any) -> None:
        self._url = url.rstrip("/")
        self._http = CountedClient(
            peer, verify=trusted_certificates(), timeout=TIMEOUT_SECONDS, **options
        )

    async def _read(self, path: str) -> dict[str, Any]:
        try:
            answer = await self._http.get(f"{self._url}/{path}")
            found = orjson.loads(answer.content) if answer.is_success else None
        except (httpx.HTTPError, orjson.JSONDecodeError) as error:
            raise ProviderAway(
                f"The provider is unreachable: {error!r}. Try again in a minute."
            ) from error
        if not isinstance(found, dict):
            raise ProviderAway(
                f"The provider returned status {answer.status_code}. Try again in a minute."
            )
        return found

    async def close(self) -> None:
        """Let go of connections."""
        await self._http.aclose()


class EnvelopeProvider(_Provider):
    """Reads envelopes of the e-signature provider, in the form of DocuSign's eSignature REST API v2.1.

    `GET …/accounts/{accountId}/envelopes/{envelopeId}?include=recipients,custom_fields` (developers.docusign.com,
    reference, Envelopes: get). Whoever opens one names the document by two text custom fields, `signatureId` and
    `documentSha256`, and the parties by the role names `buyer` and `seller`.
    """

    def __init__(self, url: str, key: str) -> None:
        super().__init__("esign", url, headers={"Authorization": f"Bearer {key}"})

    async def envelope(self, id: str) -> SignedEnvelope:
        """Fetch an envelope. Raises ProviderAway."""
        found = await self._read(f"envelopes/{id}?include=recipients,custom_fields")
        try:
            named = {one["name"]: one["value"] for one in found["customFields"]["textCustomFields"]}
            return SignedEnvelope(
                id=str(found["envelopeId"]),
                status=str(found["status"]),
                reference=str(named["signatureId"]),
                document_sha256=str(named["documentSha256"]),
                signers=tuple(
                    (
                        str(one["roleName"]),
                        str(one["name"]),
                        str(one["email"]),
                        datetime.fromisoformat(one["signedDateTime"]),
                    )
                    for one in found["recipients"]["signers"]
                    if one["status"] == COMPLETED
                ),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ProviderAway(f"The provider's envelope is malformed: {error!r}.") from error


class EscrowProvider(_Provider):
    """Reads transactions of the escrow provider, in the form of escrow.com's API of 2017-09-01.

    `GET …/transaction/{id}` under basic authentication (escrow.com/api/docs/basics, /reference): each item has a
    `schedule` of payments, each with its `amount` and whether it is `secured` and `disbursed_to_beneficiary`.
    """

    def __init__(self, url: str, login: str, key: str) -> None:
        super().__init__("escrow", url, auth=httpx.BasicAuth(login, key))

    async def transaction(self, id: str) -> EscrowTransaction:
        """Fetch a transaction. Raises ProviderAway."""
        found = await self._read(f"transaction/{id}")
        try:
            parts = [part for item in found["items"] for part in item["schedule"]]
            return EscrowTransaction(
                id=str(found["id"]),
                amount=sum((Decimal(str(one["amount"])) for one in parts), Decimal(0)),
                currency=str(found["currency"]).upper(),
                is_secured=bool(parts) and all(one["status"]["secured"] is True for one in parts),
                is_disbursed=bool(parts)
                and all(one["status"]["disbursed_to_beneficiary"] is True for one in parts),
            )
        except (KeyError, TypeError, InvalidOperation) as error:
            raise ProviderAway(f"The provider's transaction is malformed: {error!r}.") from error
