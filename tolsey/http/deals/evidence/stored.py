"""Checks what the service keeps of a signature: its bundle, and what stands beside it in the database."""

from datetime import timedelta
from typing import Final

import anyio.to_thread
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tolsey.actors.listing.deals.signatures import chain
from tolsey.http.deals.evidence import bundle, checking
from tolsey.http.deals.evidence.bundle import SignatureEvidence
from tolsey.http.deals.evidence.checking import EvidenceBroken
from tolsey.http.deals.sealing.effects import one_at_a_time
from tolsey.storage.records.selling.deals import SignatureStatus
from tolsey.storage.records.selling.roots import EsignRoot
from tolsey.storage.sealing.sealed import Vault

LATEST: Final = timedelta(hours=1)
"""A root that was signed so long after the last signature has it."""


async def first_break(
    kept: SignatureEvidence, vault: Vault, base_url: str
) -> EvidenceBroken | None:
    """Find the first part that is not what was written."""
    broken = chain.broken_at(kept.signature, kept.events)
    # Rows keep a hash beside each line, by which the very one that was changed is known.
    if broken is not None:
        return EvidenceBroken("event", checking.EVENT.format(broken), "is not what was written")
    try:
        await anyio.to_thread.run_sync(
            checking.check, bundle.files_of(kept, base_url), limiter=one_at_a_time()
        )
        _of_roots(kept, vault)
    except EvidenceBroken as found:
        return found
    return None


def _of_roots(kept: SignatureEvidence, vault: Vault) -> None:
    """Every head that was under a root is, and the last one is under the first root after it."""
    hashes = [event.hash for event in kept.events]
    for leaf, root in kept.roots:
        name = f"roots/{leaf.day}"
        if root is None:
            raise EvidenceBroken("root", name, "is missing")
        found = checking.root_of(dict(bundle.root_files(leaf, root)), hashes)
        if found != {"day": leaf.day.isoformat(), "keyId": root.key_id, "seq": leaf.seq}:
            raise EvidenceBroken("root", name, "is not over the event that it was signed over")
        if hashes[leaf.seq - 1] != leaf.head:
            raise EvidenceBroken("root", name, "is over another event")
        # A key that is still of the ring is not to be replaced by another under its name.
        if root.key_id in vault.key_ids and root.public_key != public_key(vault, root.key_id):
            raise EvidenceBroken("root", name, "was not signed by the service")
    last, ended = kept.last_root, kept.signature.ended_at
    if last is not None and _is_missed(kept, last):
        raise EvidenceBroken("root", f"roots/{last.day}", f"misses what ended at {ended}")


def _is_missed(kept: SignatureEvidence, last: EsignRoot) -> bool:
    signature = kept.signature
    return (
        signature.status is SignatureStatus.SIGNED
        and signature.ended_at is not None
        and last.signed_at > signature.ended_at + LATEST
        and all(leaf.seq != signature.seq for leaf, _ in kept.roots)
    )


def public_key(vault: Vault, key_id: str) -> str:
    """Write the key that roots are checked with, which goes with a key of the ring, as PEM."""
    key = vault.signing_key(key_id).public_key()
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
