"""Tells programs how the service does: signed, once their address confirmed that it wants to be told (rules/service#status).

Whoever subscribes gets a secret. Each delivery has the header `X-Tolsey-Signature: t=<seconds>,v1=<hex>`, the
HMAC-SHA256 under that secret of the seconds, a dot and the body.
"""

import hmac
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import httpx
import structlog

from tolsey.actors.job.messages import job
from tolsey.actors.mail import TellStatusWebhook
from tolsey.http.clients.guard import guarded_client
from tolsey.runtime.decision import Perform
from tolsey.runtime.ids import new_id
from tolsey.runtime.messages import Call
from tolsey.runtime.outbox.rows import row_of
from tolsey.settings import Settings
from tolsey.storage.database import Database, Transaction
from tolsey.storage.records.status import Incident, IncidentUpdate, StatusWebhook
from tolsey.storage.runtime import outbox
from tolsey.storage.sealing.sealed import SealBroken, Vault, fingerprint
from tolsey.storage.status import webhooks

log = structlog.get_logger()

SIGNATURE: Final = "X-Tolsey-Signature"
MOST_FAILURES: Final = 12
"""After so many tries in a row that failed an address is told no more."""
TIMEOUT: Final = httpx.Timeout(10.0)
LINK_LIFE: Final = timedelta(days=1)
LINK: Final = {"table": "status_webhooks", "column": "id", "row": "", "tenant": ""}


class NotTaken(Exception):  # noqa: N818 - what became of a delivery
    """The address did not answer that it took it."""


class StatusWebhooks:
    """Asks addresses whether they want to be told, tells those that do, and forgets those that do not answer."""

    def __init__(
        self, database: Database, vault: Vault, settings: Settings, clock: Callable[[], datetime]
    ) -> None:
        self._database = database
        self._vault = vault
        self._settings = settings
        self._clock = clock

    def handlers(self) -> Mapping[type[Call[Any]], Callable[[Any], Awaitable[None]]]:
        """Say which call this performs."""
        return {TellStatusWebhook: self.tell}

    async def invite(self, url: str, components: Sequence[str]) -> str:
        """Have an address asked whether it wants to be told; answers the secret. Nothing is kept before it says so."""
        id, secret, at = new_id("swh"), secrets.token_hex(32), self._clock()
        kept = {
            "id": id,
            "url": url,
            "secret": secret,
            "components": ",".join(components),
            "at": at.timestamp(),
        }
        token = self._vault.seal(json.dumps(kept), **LINK)
        body = {
            "type": "subscription.confirm",
            "page": self._page(),
            "components": list(components),
            "token": token,
            "confirm": f"{self._settings.base_url}/api/status/confirm",
        }
        sealed = self._vault.seal(secret, **_place(id))
        # One at a time for an address, whoever asks: nobody can have us call somebody often.
        key = f"status-confirm:{fingerprint(url).hex()}:{at:%Y-%m-%dT%H}"
        async with self._database.transaction() as tx:
            call = TellStatusWebhook(
                webhook_id=id, url=url, sealed_secret=sealed, body=json.dumps(body), is_asked=True
            )
            await self._put(tx, call, key)
        return secret

    async def confirm(self, token: str) -> StatusWebhook | None:
        """Tell an address from now on; None for a token that is not ours, too old, or while there are too many."""
        try:
            said = json.loads(self._vault.open(token, **LINK))
        except SealBroken:
            return None
        at = self._clock()
        if at.timestamp() - said["at"] > LINK_LIFE.total_seconds():
            return None
        webhook = StatusWebhook(
            id=said["id"],
            url=said["url"],
            sealed_secret=self._vault.seal(said["secret"], **_place(said["id"])),
            components=said["components"],
            confirmed_at=at,
        )
        async with self._database.transaction() as tx:
            return webhook if await webhooks.subscribe(tx, webhook) else None

    async def end(self, token: str) -> bool:
        """Tell an address no more; False for a token that is none of a delivery's."""
        try:
            id = self._vault.open(token, **ENDING)
        except SealBroken:
            return False
        await webhooks.unsubscribe(self._database, id)
        return True

    async def tell_of(self, incident: Incident, update: IncidentUpdate) -> int:
        """Tell every address that wants to hear of a part what was said of an incident; answers how many."""
        told = 0
        async for page in webhooks.of_component(self._database, incident.component):
            async with self._database.transaction() as tx:
                for one in page:
                    body = {
                        "type": "incident.updated",
                        "page": self._page(),
                        "incident": {
                            "id": incident.id,
                            "name": incident.title,
                            "component": incident.component,
                            "impact": incident.impact,
                            "status": update.state,
                            "createdAt": _written(incident.opened_at),
                        },
                        "update": {
                            "id": update.id,
                            "status": update.state,
                            "body": update.body,
                            "createdAt": _written(update.at),
                        },
                        "unsubscribe": {
                            "address": f"{self._settings.base_url}/api/status/unsubscribe",
                            "token": self._vault.seal(one.id, **ENDING),
                        },
                    }
                    call = TellStatusWebhook(
                        webhook_id=one.id,
                        url=one.url,
                        sealed_secret=one.sealed_secret,
                        body=json.dumps(body),
                    )
                    await self._put(tx, call, f"status:{update.id}:{one.id}")
            told += len(page)
        return told

    async def tell(self, call: TellStatusWebhook) -> None:
        """Deliver once; an address that fails too often in a row is forgotten."""
        known = call.is_asked or await webhooks.find(self._database, call.webhook_id)
        if not known:
            return
        try:
            await self._deliver(call)
        except (NotTaken, httpx.HTTPError) as error:
            if call.is_asked:
                log.info("status.webhook_silent", why=str(error))
                return
            if await webhooks.note_failure(self._database, call.webhook_id, MOST_FAILURES):
                log.warning("status.webhook_forgotten", webhook_id=call.webhook_id)
                return
            raise
        await webhooks.note_success(self._database, call.webhook_id)

    async def _deliver(self, call: TellStatusWebhook) -> None:
        secret = self._vault.open(call.sealed_secret, **_place(call.webhook_id))
        body, at = call.body.encode(), int(self._clock().timestamp())
        signed = hmac.digest(secret.encode(), f"{at}.".encode() + body, "sha256").hex()
        headers = {"Content-Type": "application/json", SIGNATURE: f"t={at},v1={signed}"}
        # What it answers is of no use to us, however long it is: it is not read.
        async with (
            guarded_client(peer="status", timeout=TIMEOUT) as client,
            client.stream("POST", call.url, content=body, headers=headers) as answer,
        ):
            if not answer.is_success:
                raise NotTaken(f"answered {answer.status_code}")

    def _page(self) -> dict[str, str]:
        return {"name": "tolsey", "url": f"{self._settings.base_url}/status"}

    async def _put(self, tx: Transaction, call: TellStatusWebhook, key: str) -> None:
        owner = job("mail")
        row = row_of(Perform(call, key=key), owner, key, form=self._settings.wire_form)
        await outbox.put(tx, [row])


ENDING: Final = {"table": "status_webhooks", "column": "unsubscribe", "row": "", "tenant": ""}


def _written(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _place(id: str) -> dict[str, str]:
    return {"table": "status_webhooks", "column": "sealed_secret", "row": id, "tenant": id}
