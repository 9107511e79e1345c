"""How each kind of provider proves what it sends, and what its events are called.

An e-signature provider signs as DocuSign Connect does. An escrow provider signs nothing: what it says is fetched
from it again before it counts, and a transaction that no deal names is not looked at. A mail provider signs as Standard Webhooks says, a code host as GitHub does (Gitea and Forgejo do the same), a
messaging service as Slack does. What makes an event a repeat is always something that was signed.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tolsey.actors.bodies import Body, Unreadable, lenient
from tolsey.actors.listing.deals.messages import AskProvider
from tolsey.actors.mail import MarkAddresses
from tolsey.http.webhooks.signatures import TIME, Forged, require_recent
from tolsey.runtime.messages import Call

Headers = Sequence[tuple[bytes, bytes]]

ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,200}")
TYPE: Final = re.compile(r"[A-Za-z0-9._:/-]{1,100}")
KEY_PREFIX: Final = b"whsec_"
HUB_SIGNATURE: Final = re.compile(rb"sha256=([0-9a-f]{64})")
CONNECT_SIGNATURE: Final = re.compile(rb"x-docusign-signature-[0-9]{1,3}")
FUNDED: Final = frozenset(
    {"transaction.funded", "payment_approved", "transaction.payment_approved"}
)
"""What escrow providers call it when the buyer's money is there: the specification's word, and escrow.com's."""
RELEASED: Final = frozenset(
    {"transaction.released", "complete", "transaction.complete", "payment_disbursed"}
)
"""What they call it when the seller is paid, likewise."""
DATED_SIGNATURE: Final = re.compile(rb"v0=([0-9a-f]{64})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderNotice:
    """Which event a provider tells of."""

    event_id: str
    type: str
    about: str = ""
    """What of the provider's it is about, where anybody could post it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderKind:
    """A kind of provider: how it proves an event, names it, and asks whether we are there.

    `prove` takes the body, the headers, our secrets and the time; it raises Forged or Stale. `challenge` gives
    back the answer to a question that is no event, if it is one. Types of `acted_on` change something here.
    """

    name: str
    setting: str
    prove: Callable[[bytes, Headers, Sequence[bytes], float], None]
    notice: Callable[[bytes, Headers, Body], ProviderNotice]
    challenge: Callable[[Body], dict[str, Any] | None] = lambda _: None
    acted_on: frozenset[str] = frozenset()
    call: Callable[[str], Call[Any]] | None = None
    """What does what an event of those types says, by the event's id."""
    needs: tuple[str, ...] = ()
    """The settings beside `setting` without which nothing of it can be done."""
    is_signed: bool = True
    asks_again: bool = False
    """Whether what failed is looked at again when it comes again."""

    @property
    def path(self) -> str:
        """Where its events are posted."""
        return f"/api/webhooks/{self.name}"


def _single(headers: Headers, name: bytes) -> bytes:
    """Read a header that is there once; two lines of it would be two claims, and count for nothing."""
    found = [value for key, value in headers if key == name]
    return found[0] if len(found) == 1 else b""


def _require_signed(signed: bytes, secrets: Iterable[bytes], claimed: Sequence[bytes]) -> None:
    """Return when a secret signed the text with one of these digests. Raises Forged."""
    is_proven = False
    for secret in secrets:
        digest = hmac.digest(secret, signed, "sha256")
        for one in claimed:
            is_proven |= hmac.compare_digest(digest, one)
    if not is_proven:
        raise Forged


def _prove_standard(body: bytes, headers: Headers, secrets: Sequence[bytes], now: float) -> None:
    """Prove by `webhook-signature` over `id.timestamp.body` (Standard Webhooks, "Signature scheme")."""
    event_id, time, signature = (
        _single(headers, b"webhook-" + name) or _single(headers, b"svix-" + name)
        for name in (b"id", b"timestamp", b"signature")
    )
    if not event_id or not TIME.fullmatch(time):
        raise Forged
    claimed = []
    for one in signature.split(b" "):
        version, _, text = one.partition(b",")
        if version == b"v1":
            try:
                claimed.append(base64.b64decode(text, validate=True))
            except binascii.Error as error:
                raise Forged from error
    keys = [_key_of(secret) for secret in secrets]
    _require_signed(b"%b.%b.%b" % (event_id, time, body), keys, claimed)
    require_recent(time, now)


def _key_of(secret: bytes) -> bytes:
    """Read a secret as its provider writes it: base64 behind a prefix, or the very bytes."""
    if not secret.startswith(KEY_PREFIX):
        return secret
    try:
        return base64.b64decode(secret.removeprefix(KEY_PREFIX), validate=True)
    except binascii.Error:
        return secret


def _prove_hub(body: bytes, headers: Headers, secrets: Sequence[bytes], now: float) -> None:
    """Prove by `X-Hub-Signature-256` over the body, which has no time: a repeat is known by the body."""
    del now
    found = HUB_SIGNATURE.fullmatch(_single(headers, b"x-hub-signature-256"))
    if found is None:
        raise Forged
    _require_signed(body, secrets, [bytes.fromhex(found[1].decode())])


def _prove_dated(body: bytes, headers: Headers, secrets: Sequence[bytes], now: float) -> None:
    """Prove by `X-Slack-Signature` over `v0:timestamp:body`."""
    time = _single(headers, b"x-slack-request-timestamp")
    found = DATED_SIGNATURE.fullmatch(_single(headers, b"x-slack-signature"))
    if found is None or not TIME.fullmatch(time):
        raise Forged
    _require_signed(b"v0:%b:%b" % (time, body), secrets, [bytes.fromhex(found[1].decode())])
    require_recent(time, now)


def _named(value: object, pattern: re.Pattern[str], field: str) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise Unreadable(field, "not a name of an event")
    return value


def _mail_notice(body: bytes, headers: Headers, parsed: Body) -> ProviderNotice:
    del body
    sent = _single(headers, b"webhook-id") or _single(headers, b"svix-id")
    event_id = _named(sent.decode("latin-1"), ID, "webhook-id")
    return ProviderNotice(event_id=event_id, type=_named(parsed.get("type"), TYPE, "type"))


def _code_notice(body: bytes, headers: Headers, parsed: Body) -> ProviderNotice:
    """Name an event by its body: the headers with its id are not signed, so a repeat could change them."""
    told = _single(headers, b"x-github-event").decode("latin-1")
    action = parsed.get("action")
    name = f"{told}.{action}" if isinstance(action, str) else told
    return ProviderNotice(
        event_id=hashlib.sha256(body).hexdigest(), type=_named(name, TYPE, "x-github-event")
    )


def _message_notice(body: bytes, headers: Headers, parsed: Body) -> ProviderNotice:
    del body, headers
    what = lenient(parsed.get("event")).get("type", parsed.get("type"))
    event_id = _named(parsed.get("event_id"), ID, "event_id")
    return ProviderNotice(event_id=event_id, type=_named(what, TYPE, "event.type"))


def _challenge(parsed: Body) -> dict[str, Any] | None:
    """Give back what a messaging service sends to see whether the address is ours."""
    asked = parsed.get("challenge")
    if parsed.get("type") != "url_verification" or not isinstance(asked, str):
        return None
    return {"challenge": asked[:1_000]}


def _prove_connect(body: bytes, headers: Headers, secrets: Sequence[bytes], now: float) -> None:
    """Prove by `X-DocuSign-Signature-N`, one for each key, over the body alone (developers.docusign.com, HMAC).

    It has no time: what comes again is known by its envelope, which is asked for again anyway.
    """
    del now
    claimed = []
    for name, value in headers:
        if CONNECT_SIGNATURE.fullmatch(name):
            try:
                claimed.append(base64.b64decode(value, validate=True))
            except binascii.Error as error:
                raise Forged from error
    _require_signed(body, secrets, claimed)


def _envelope_notice(body: bytes, headers: Headers, parsed: Body) -> ProviderNotice:
    """Name an event as Connect's JSON does: `event`, and the envelope in `data` (JSON SIM event model)."""
    del body, headers
    about = _named(lenient(parsed.get("data")).get("envelopeId"), ID, "data.envelopeId")
    kind = _named(parsed.get("event"), TYPE, "event")
    event_id = _named(f"{about}:{kind}", ID, "data.envelopeId")
    return ProviderNotice(event_id=event_id, type=kind, about=about)


def _unsigned(body: bytes, headers: Headers, secrets: Sequence[bytes], now: float) -> None:
    """Prove nothing: the provider signs nothing, and is asked again."""
    del body, headers, secrets, now


def _escrow_notice(body: bytes, headers: Headers, parsed: Body) -> ProviderNotice:
    """Name an event by its transaction and type: nothing else of it could be believed.

    Both stand beside an `event_type` that says `transaction` (escrow.com/api/docs/webhooks, which asks for every
    one to be fetched again).
    """
    del body, headers
    told = parsed.get("transaction_id")
    about = _named(str(told) if isinstance(told, int) else told, ID, "transaction_id")
    kind = _named(parsed.get("event"), TYPE, "event")
    event_id = _named(f"{about}:{kind}", ID, "transaction_id")
    return ProviderNotice(event_id=event_id, type=kind, about=about)


MAIL: Final = ProviderKind(
    name="mail",
    setting="MAIL_WEBHOOK_SECRET",
    prove=_prove_standard,
    notice=_mail_notice,
    acted_on=frozenset({"email.bounced", "email.complained"}),
    call=lambda event_id: MarkAddresses(event_id=event_id),
)
CODE_HOST: Final = ProviderKind(
    name="code-host", setting="CODE_HOST_WEBHOOK_SECRET", prove=_prove_hub, notice=_code_notice
)
MESSAGING: Final = ProviderKind(
    name="messaging",
    setting="MESSAGING_WEBHOOK_SECRET",
    prove=_prove_dated,
    notice=_message_notice,
    challenge=_challenge,
)
ESIGN: Final = ProviderKind(
    name="esign",
    setting="ESIGN_WEBHOOK_SECRET",
    needs=("ESIGN_API_URL", "ESIGN_API_KEY"),
    prove=_prove_connect,
    notice=_envelope_notice,
    asks_again=True,
    acted_on=frozenset({"envelope-completed"}),
    call=lambda event_id: AskProvider(provider="esign", event_id=event_id),
)
ESCROW: Final = ProviderKind(
    name="escrow",
    setting="ESCROW_API_URL",
    needs=("ESCROW_API_LOGIN", "ESCROW_API_KEY"),
    is_signed=False,
    prove=_unsigned,
    notice=_escrow_notice,
    acted_on=FUNDED | RELEASED,
    asks_again=True,
    call=lambda event_id: AskProvider(provider="escrow", event_id=event_id),
)
KINDS: Final = (MAIL, CODE_HOST, MESSAGING, ESIGN, ESCROW)
