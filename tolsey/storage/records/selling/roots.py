"""Daily roots over the heads of signatures, the way of each head to its root, and links that let strangers check."""

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Annotated

from tolsey.storage.owners import Belongs, RowOwner
from tolsey.storage.records.selling.deals import OF_PARTY
from tolsey.storage.records.selling.sealing import MADE_OF_OTHERS
from tolsey.storage.tables import Age, Jsonb, Personal, Sealed, stored


@stored("esign_roots", appended=("day",), nobodys="Hashes of hashes, which the service publishes.")
@dataclass(frozen=True, slots=True, kw_only=True)
class EsignRoot:
    """What was signed of a day: `body` is its exact RFC 8785 text; a row of esign_roots."""

    day: date
    body: str
    signature: str
    """Ed25519 (RFC 8032) over the bytes of `body`, as base64url."""
    key_id: str
    public_key: str
    """As PEM, so that it outlives the ring."""
    signed_at: datetime


@stored(
    "esign_leaves",
    appended=("signature_id", "seq"),
    belongs=(OF_PARTY,),
    unexported=MADE_OF_OTHERS,
)
@dataclass(frozen=True, slots=True, kw_only=True)
class EsignLeaf:
    """That the head of a signature, after its event `seq`, is under the root of a day: a row of esign_leaves."""

    signature_id: str
    seq: int
    deal_id: str
    head: str
    day: date
    way: Annotated[str, Jsonb]
    """To the root: a list of the other child's side and hash."""


@stored(
    "signature_shares",
    key=("token_hash",),
    retention=Age(column="expires_at"),
    swept="signatureShares",
    belongs=(OF_PARTY, Belongs(to=RowOwner.USER, by="created_by")),
    unexported="Hashes of the addresses that parties gave away.",
)
@dataclass(frozen=True, slots=True, kw_only=True)
class SignatureShare:
    """A link by which a stranger may check a signature until it expires: a row of signature_shares."""

    token_hash: Annotated[bytes, Sealed] = field(repr=False)
    signature_id: str
    deal_id: str
    created_by: Annotated[str, Personal.USER]
    created_at: datetime
    expires_at: datetime
