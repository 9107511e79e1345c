"""Stand-ins of the providers that deals are closed with: they check who asks, and tell over real HTTP what happened.

Nothing is believed here that the real ones would refuse: a wrong key is 401, another path 404, and a fault that
was put up is answered before anything else.
"""

import base64
import hmac
import itertools
import json
import secrets
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import anyio

from tolsey.sandbox import deliveries
from tolsey.sandbox.server import Receive, Send, listening, whole

CONTROL: Final = "/control/"


@dataclass(slots=True, kw_only=True)
class ProviderDelivery(deliveries.Delivery):
    """One event of a provider."""

    event_id: str


@dataclass(slots=True)
class ProviderDeliveries(deliveries.Outgoing[ProviderDelivery]):
    """Events on their way; with a key they are signed as DocuSign Connect does, without one they are not."""

    key: bytes = field(default=b"", repr=False)

    @property
    def first_wait_seconds(self) -> float:
        """Retry at once: whoever tests does not wait."""
        return 0.05

    def headers(self, delivery: ProviderDelivery) -> Mapping[str, str]:
        """Sign the body, by a key that is not ours and by ours, as where keys are being changed."""
        made = {"Content-Type": "application/json"}
        if self.key:
            keys = (b"the key before", self.key)
            for number, key in enumerate(keys, 1):
                digest = hmac.digest(key, delivery.body, "sha256")
                made[f"X-DocuSign-Signature-{number}"] = base64.b64encode(digest).decode()
        return made


class StandInProvider:
    """What both stand-ins have: things by their ids, who may read them, and events about them."""

    id_name = "id"

    def __init__(self, prefix: str, authorization: str, *, signing_key: bytes = b"") -> None:
        self.deliveries = ProviderDeliveries(key=signing_key)
        self.things: dict[str, dict[str, Any]] = {}
        self.faults: list[int] = []
        """Statuses that the next requests are answered with, one after the other."""
        self.requests: list[tuple[str, str]] = []
        """Every request's method and path."""
        self.events_url = ""
        self.acts: dict[str, Callable[..., str | None]] = {}
        """What a person can do there, by `POST /control/<act>`."""
        self._prefix = prefix
        self._authorization = authorization
        self._ids = itertools.count(1)

    @asynccontextmanager
    async def serve(self, port: int = 0) -> AsyncIterator[str]:
        """Listen on loopback, and send events, while the block runs; gives the address."""
        async with listening(self, port) as chosen, anyio.create_task_group() as tasks:
            tasks.start_soon(self.deliveries.run)
            yield f"http://127.0.0.1:{chosen}"
            tasks.cancel_scope.cancel()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await _accept_lifespan(receive, send)
            return
        self.requests.append((scope["method"], scope["path"]))
        if scope["path"].startswith(CONTROL) and scope["method"] == "POST":
            status, body = self._controlled(scope["path"], await whole(receive))
        else:
            status, body = self._answer(scope)
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(body).encode()})

    def _answer(self, scope: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.faults:
            return self.faults.pop(0), {"error": "a fault that was put up"}
        given = dict(scope["headers"]).get(b"authorization", b"").decode()
        if not hmac.compare_digest(given, self._authorization):
            return 401, {"error": "unauthorized"}
        found = self.things.get(scope["path"].removeprefix(self._prefix))
        if scope["method"] != "GET" or not scope["path"].startswith(self._prefix) or not found:
            return 404, {"error": "not_found"}
        return 200, found

    def _controlled(self, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """Do what a person does at the provider, who tries it by hand."""
        act = self.acts.get(path.removeprefix(CONTROL))
        if act is None:
            return 404, {"error": "not_found", "acts": sorted(self.acts)}
        try:
            return 200, {"id": act(**json.loads(body or b"{}"))}
        except (TypeError, KeyError, ValueError) as error:
            return 422, {"error": repr(error)}

    def add(self, thing: dict[str, Any]) -> str:
        """Keep a thing under a new id."""
        id = self.new_id(next(self._ids))
        self.things[id] = {self.id_name: id, **thing}
        return id

    @abstractmethod
    def new_id(self, number: int) -> str:
        """Make an id as the provider makes it."""

    def tell(self, body: dict[str, Any]) -> None:
        """Send an event."""
        content = json.dumps(body).encode()
        event_id = f"msg_{secrets.token_hex(8)}"
        self.deliveries.send(ProviderDelivery(url=self.events_url, body=content, event_id=event_id))


class SigningDesk(StandInProvider):
    """An e-signature provider: envelopes that both parties sign there."""

    id_name = "envelopeId"

    def __init__(self, key: str, signing_key: bytes) -> None:
        super().__init__("/envelopes/", f"Bearer {key}", signing_key=signing_key)
        self.acts = {"complete": self.complete}

    def new_id(self, number: int) -> str:
        """Make an id."""
        return f"env_{number}"

    def complete(self, reference: str, document_sha256: str, signers: list[dict[str, str]]) -> str:
        """Have everybody sign an envelope, and tell of it; a signer has roleName, name, email, signedDateTime."""
        id = self.open(reference, document_sha256, signers, status="completed")
        self.tell_completed(id)
        return id

    def open(
        self, reference: str, document_sha256: str, signers: list[dict[str, str]], status: str
    ) -> str:
        """Put an envelope before its signers, who are as far as it is."""
        named = {"signatureId": reference, "documentSha256": document_sha256}
        return self.add(
            {
                "status": status,
                "customFields": {
                    "textCustomFields": [
                        {"name": name, "value": said} for name, said in named.items()
                    ],
                    "listCustomFields": [],
                },
                "recipients": {"signers": [{**one, "status": status} for one in signers]},
            }
        )

    def tell_completed(self, id: str) -> None:
        """Tell that an envelope is complete, whether or not it is."""
        self.tell(
            {
                "event": "envelope-completed",
                "apiVersion": "v2.1",
                "uri": f"/restapi/v2.1/accounts/account/envelopes/{id}",
                "retryCount": 0,
                "configurationId": 1,
                "generatedDateTime": datetime.now(UTC).isoformat(),
                "data": {"accountId": "account", "userId": "user", "envelopeId": id},
            }
        )


class EscrowDesk(StandInProvider):
    """An escrow provider: transactions of one payment each, told of without a signature."""

    def __init__(self, login: str, key: str) -> None:
        pair = base64.b64encode(f"{login}:{key}".encode()).decode()
        super().__init__("/transaction/", f"Basic {pair}")
        self.acts = {"open": self.open, "fund": self.fund, "release": self.release}

    def new_id(self, number: int) -> str:
        """Make an id."""
        return str(3_300_000 + number)

    def open(self, amount: str, currency: str) -> str:
        """Open a transaction."""
        status = {"secured": False, "disbursed_to_beneficiary": False}
        return self.add(
            {
                "currency": currency,
                "items": [
                    {"type": "domain_name", "schedule": [{"amount": amount, "status": status}]}
                ],
            }
        )

    def fund(self, id: str) -> None:
        """Take the buyer's money, and tell of it."""
        self._mark(id, "secured")
        self.tell_of(id, "transaction.funded")

    def release(self, id: str) -> None:
        """Pay the seller, and tell of it."""
        self._mark(id, "disbursed_to_beneficiary")
        self.tell_of(id, "transaction.released")

    def _mark(self, id: str, name: str) -> None:
        for item in self.things[id]["items"]:
            for part in item["schedule"]:
                part["status"][name] = True

    def tell_of(self, id: str, event: str) -> None:
        """Tell of a transaction, whether or not it is so."""
        self.tell({"event": event, "event_type": "transaction", "transaction_id": int(id)})


async def _accept_lifespan(receive: Receive, send: Send) -> None:
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return
