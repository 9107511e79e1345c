"""Which keys the data are sealed with: their fingerprints, kept beside what they seal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tolsey.settings import Settings
from tolsey.storage import audit
from tolsey.storage.commerce import stores
from tolsey.storage.database import Database, Transaction
from tolsey.storage.errors import StorageError
from tolsey.storage.sealing import rotation
from tolsey.storage.sealing.sealed import KEY_FILE, SealBroken, Vault

ROTATE = "tolsey rotate-keys"
ACCEPT = "tolsey doctor --accept-keys"


class KeyringError(StorageError):
    """The keys at hand are not those that the data are sealed with; one line says what to do."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The keys that are known from now on, and those that nobody asks for any more."""

    key_ids: Sequence[str]
    given_up: Sequence[str]


async def open_vault(database: Database, settings: Settings) -> Vault:
    """Open the vault with the keys of the data, or raise KeyringError.

    A key is made only for data that never had one. Keys that come new beside all known ones are
    known from then on.
    """
    async with database.transaction() as tx:
        known = await _known(tx)
        vault = _at_hand(settings)
        # A key is made once (rules/service#encryption-keys). Beside sealed data it would take the lost one's place.
        if vault is None and not known:
            vault = Vault.make(settings.data_dir)
        why = _foreign(known, vault, settings) or await _unreadable(tx, known, vault, settings)
        if vault is None or why:
            raise KeyringError(why)
        await _remember(tx, vault)
        return vault


async def accept(database: Database, settings: Settings) -> Accepted:
    """Know the keys at hand from now on, and ask no more for those that are not; audited."""
    async with database.transaction() as tx:
        known = await _known(tx)
        vault = _at_hand(settings) or Vault.make(settings.data_dir)
        given_up = [
            key_id for key_id, mark in known.items() if not _is_at_hand(key_id, mark, vault)
        ]
        await tx.execute("DELETE FROM encryption_keys")
        await _remember(tx, vault)
        await audit.write(
            tx,
            "encryption_keys.accepted",
            ",".join(vault.key_ids),
            actor="operator",
            reason=ACCEPT,
            given_up=given_up,
        )
        return Accepted(vault.key_ids, given_up)


async def forget_unused(database: Database, settings: Settings) -> list[str]:
    """Ask no more for keys that were taken out of the ring and seal nothing; answer which, audited."""
    async with database.transaction() as tx:
        known, vault = await _known(tx), _at_hand(settings)
        ring = vault.key_ids if vault else ()
        unused = [
            key_id
            for key_id in known
            if ring and key_id not in ring and not await rotation.is_in_use(tx, key_id)
        ]
        for key_id in unused:
            await tx.execute("DELETE FROM encryption_keys WHERE key_id = $1", key_id)
            event = (tx, "encryption_keys.forgotten", key_id)
            await audit.write(*event, actor="operator", reason=ROTATE)
        return unused


async def still_used(database: Database, settings: Settings) -> list[tuple[str, str, int]]:
    """Say which keys but the first seal what waits for its turn: the key, the table, and how many rows."""
    async with database.transaction() as tx:
        known, vault = await _known(tx), _at_hand(settings)
        first = vault.key_ids[0] if vault else None
        return [
            (key_id, table, count)
            for key_id in known
            if key_id != first
            for table, count in (await rotation.on_the_way(tx, key_id)).items()
        ]


async def note_rotation(database: Database, key_id: str, *, sealed: int, unopened: int) -> None:
    """Write down that what other keys sealed is sealed with this one now."""
    async with database.transaction() as tx:
        await audit.write(
            tx,
            "encryption_keys.rotated",
            key_id,
            actor="operator",
            reason=ROTATE,
            sealed=sealed,
            unopened=unopened,
        )


async def trouble(database: Database, settings: Settings) -> str:
    """Say why the service would not start with the keys at hand; empty when it would."""
    async with database.transaction() as tx:
        known, vault = await _known(tx), _at_hand(settings)
        if vault is None and not known:
            return ""
        return _foreign(known, vault, settings) or await _unreadable(tx, known, vault, settings)


async def _known(tx: Transaction) -> dict[str, bytes | None]:
    # Two first starts at once: the second one finds the keys of the first.
    await tx.execute("LOCK TABLE encryption_keys IN EXCLUSIVE MODE")
    rows = await tx.fetch("SELECT key_id, fingerprint FROM encryption_keys ORDER BY known_since")
    return {row["key_id"]: row["fingerprint"] for row in rows}


async def _remember(tx: Transaction, vault: Vault) -> None:
    await tx.executemany(
        """
        INSERT INTO encryption_keys (key_id, fingerprint) VALUES ($1, $2)
        ON CONFLICT (key_id) DO UPDATE SET fingerprint = EXCLUDED.fingerprint
        WHERE encryption_keys.fingerprint IS NULL
        """,
        [(key_id, vault.fingerprint_of(key_id)) for key_id in vault.key_ids],
    )


def _at_hand(settings: Settings) -> Vault | None:
    if settings.encryption_keys:
        return Vault.from_keys(settings.encryption_keys)
    try:
        return Vault.load(settings.data_dir)
    except (OSError, ValueError) as error:
        raise KeyringError(f"{settings.data_dir / KEY_FILE} cannot be read: {error}") from error


def _is_at_hand(key_id: str, mark: bytes | None, vault: Vault | None) -> bool:
    if vault is None or key_id not in vault.key_ids:
        return False
    return mark is None or mark == vault.fingerprint_of(key_id)


def _foreign(known: Mapping[str, bytes | None], vault: Vault | None, settings: Settings) -> str:
    """Say which known key is not at hand and what to do; empty when all are."""
    missing = [key_id for key_id, mark in known.items() if not _is_at_hand(key_id, mark, vault)]
    if not missing:
        return ""
    place = "ENCRYPTION_KEYS" if settings.encryption_keys else str(settings.data_dir / KEY_FILE)
    names = ", ".join(missing)
    if vault is None:
        said = f"{place} is gone, and the data are sealed with its key {names}."
    elif set(missing) & set(vault.key_ids):
        said = f"{place} holds another key under the name of one that the data are sealed with: {names}."
    else:
        said = f"{place} lacks a key that the data are sealed with: {names}."
    return f"{said} Put it back, or give up what it sealed with `{ACCEPT}`."


async def _unreadable(
    tx: Transaction,
    known: Mapping[str, bytes | None],
    vault: Vault | None,
    settings: Settings,
) -> str:
    """Try a key of which only the name is known on something it sealed; empty when it opens."""
    for key_id in [one for one, mark in known.items() if mark is None]:
        row = await tx.fetchrow(
            "SELECT id, sealed_salt FROM stores WHERE split_part(sealed_salt, '.', 2) = $1 LIMIT 1",
            key_id,
        )
        try:
            if row is not None and vault is not None:
                stores.open_salt(vault, row["id"], row["sealed_salt"])
        except SealBroken:
            return _foreign({key_id: b""}, vault, settings)
    return ""
