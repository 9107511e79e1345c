"""Signs a root over the heads of signatures once a day: what was signed cannot be made anew later."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Final

import anyio.to_thread
import orjson

from tolsey.actors.job.effects import Progress, Work
from tolsey.actors.listing.deals.signatures.chain import moment
from tolsey.actors.listing.evidence import canonical, sha256
from tolsey.http.deals.evidence.merkle import grown
from tolsey.http.deals.evidence.stored import public_key
from tolsey.storage.database import Database
from tolsey.storage.records.selling.roots import EsignLeaf, EsignRoot
from tolsey.storage.sealing.sealed import Vault, base64url
from tolsey.storage.selling import roots
from tolsey.storage.selling.roots import UnrootedHead

DAY: Final = timedelta(days=1)


class EsignRoots:
    """Signs daily roots, each over every head that is under none yet."""

    def __init__(self, database: Database, vault: Vault, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._vault = vault
        self._clock = clock

    def work(self) -> Mapping[str, Work]:
        """List it by the job's name."""
        return {"esign-roots": self.sign}

    async def sign(self, scheduled_at: datetime, progress: Progress) -> Mapping[str, int]:
        """Sign the root of the day before; none where nothing was signed, and one however often it is asked."""
        day, counters = (scheduled_at - DAY).date(), {"signatures": 0}
        async with self._database.transaction() as tx:
            await roots.hold(tx)
            before = await roots.last(tx)
            heads = await roots.unrooted(tx)
            if heads and (before is None or before.day < day):
                made = await anyio.to_thread.run_sync(self._made, day, heads, before)
                await roots.keep(tx, *made)
                counters["signatures"] = len(heads)
        progress(counters)
        return counters

    def _made(
        self, day: date, heads: Sequence[UnrootedHead], before: EsignRoot | None
    ) -> tuple[EsignRoot, list[EsignLeaf]]:
        at, key_id = self._clock(), self._vault.key_ids[0]
        root, ways = grown([one.head for one in heads])
        body = canonical(
            {
                "v": 1,
                "type": "esign.root",
                "day": day.isoformat(),
                "signatures": len(heads),
                "root": root,
                # Each names the one before, so that none is left out of the list later.
                "previous": sha256(before.body.encode()) if before else None,
                "keyId": key_id,
                "signedAt": moment(at),
            }
        )
        made = EsignRoot(
            day=day,
            body=body.decode(),
            signature=base64url(self._vault.signing_key(key_id).sign(body)),
            key_id=key_id,
            public_key=public_key(self._vault, key_id),
            signed_at=at,
        )
        leaves = [
            EsignLeaf(
                signature_id=one.signature_id,
                seq=one.seq,
                deal_id=one.deal_id,
                head=one.head,
                day=day,
                way=orjson.dumps(way).decode(),
            )
            for one, way in zip(heads, ways, strict=True)
        ]
        return made, leaves
