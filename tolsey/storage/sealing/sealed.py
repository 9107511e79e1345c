"""Secrets at rest: AES-256-GCM, bound to the row that holds them."""

import base64
import binascii
import hashlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tolsey.setting_types import parse_keyring

VERSION = "v1"
NONCE_BYTES = 12
KEY_BYTES = 32
KEY_FILE = "encryption_keys"
P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
TRANSIT = "between processes"
"""In the place of a table's name: the key of what is sealed on its way and kept nowhere."""


class SealBroken(Exception):  # noqa: N818 - what became of the seal
    """The text was not sealed for this place, was changed since, or its key is not known."""


def base64url(raw: bytes) -> str:
    """Write bytes as base64url without padding (RFC 7515, section 2)."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    """Read base64url; a second spelling of the same bytes is refused, so that every bit counts."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise SealBroken("not base64url") from error
    if base64url(raw) != text:
        raise SealBroken("not canonical base64url")
    return raw


def _bound(*parts: str) -> bytes:
    """Join texts so that no two different lists of texts give the same bytes."""
    encoded = [part.encode() for part in parts]
    return b"".join(len(part).to_bytes(4, "big") + part for part in encoded)


def _derive(key: bytes, info: bytes) -> bytes:
    return HKDF(hashes.SHA256(), length=KEY_BYTES, salt=None, info=info).derive(key)


class Vault:
    """Seals and opens with a ring of keys: the first seals, all of them open."""

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        if not keys or any(len(key) != KEY_BYTES for key in keys.values()):
            raise ValueError(f"a vault needs keys of {KEY_BYTES} bytes")
        self._keys = dict(keys)
        self._active = next(iter(self._keys))
        self._ciphers: dict[tuple[str, str], AESGCM] = {}

    def __repr__(self) -> str:
        return f"Vault(key_ids={self.key_ids!r})"

    @classmethod
    def from_keys(cls, keyring: str) -> "Vault":
        """Read `keyId:base64url32,...`."""
        return cls(parse_keyring(keyring))

    @classmethod
    def load(cls, data_dir: Path) -> "Vault | None":
        """Use the key kept under a directory; None when there is none."""
        path = data_dir / KEY_FILE
        if not path.exists():
            return None
        path.chmod(0o600)
        return cls.from_keys(path.read_text().strip())

    @classmethod
    def make(cls, data_dir: Path) -> "Vault":
        """Make a key under a directory, once, readable by its owner only, and with an id of its own."""
        data_dir.mkdir(parents=True, exist_ok=True)
        path = data_dir / KEY_FILE
        made = data_dir / f".{KEY_FILE}.{secrets.token_hex(8)}"
        handle = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            key = base64url(secrets.token_bytes(KEY_BYTES))
            file.write(f"made-{secrets.token_hex(6)}:{key}\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            # A link is all or nothing and never overwrites: of two starts one key wins.
            path.hardlink_to(made)
        except FileExistsError:
            pass
        finally:
            made.unlink()
        return cls.from_keys(path.read_text().strip())

    @property
    def key_ids(self) -> tuple[str, ...]:
        """The ids of the ring, the sealing one first."""
        return tuple(self._keys)

    def fingerprint_of(self, key_id: str) -> bytes:
        """Derive what a key is known by, which tells nothing of the key (RFC 5869, section 3.2)."""
        return _derive(self._keys[key_id], b"tolsey/fingerprint/v1")

    def seal(self, plain: str, *, table: str, column: str, row: str, tenant: str) -> str:
        """Seal a text for one place: `v1.<keyId>.<base64url of nonce and ciphertext>`."""
        key_id = self._active
        nonce = secrets.token_bytes(NONCE_BYTES)
        place = _bound(VERSION, table, column, row, tenant, key_id)
        sealed = self._cipher(key_id, table).encrypt(nonce, plain.encode(), place)
        return f"{VERSION}.{key_id}.{base64url(nonce + sealed)}"

    def open(self, sealed: str, *, table: str, column: str, row: str, tenant: str) -> str:
        """Open what was sealed for this very place, or raise SealBroken."""
        version, _, rest = sealed.partition(".")
        key_id, _, encoded = rest.partition(".")
        if version != VERSION or key_id not in self._keys:
            raise SealBroken("unknown format or key")
        raw = _decode(encoded)
        place = _bound(VERSION, table, column, row, tenant, key_id)
        try:
            plain = self._cipher(key_id, table).decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], place)
        except (InvalidTag, ValueError) as error:
            raise SealBroken("the seal does not fit") from error
        return plain.decode()

    def wrap(self, raw: bytes, place: str, key_id: str) -> bytes:
        """Seal bytes on their way to a place with a key: `<length of key id><key id><nonce><ciphertext>`."""
        nonce = os.urandom(NONCE_BYTES)
        sealed = self._cipher(key_id, TRANSIT).encrypt(nonce, raw, place.encode())
        return bytes((len(key_id),)) + key_id.encode() + nonce + sealed

    def unwrap(self, wrapped: bytes, place: str) -> bytes:
        """Open what was sealed on its way to this very place, or raise SealBroken."""
        length = wrapped[0] if wrapped else 0
        key_id = wrapped[1 : 1 + length].decode("ascii", "replace")
        if key_id not in self._keys:
            raise SealBroken("unknown key")
        nonce = wrapped[1 + length : 1 + length + NONCE_BYTES]
        sealed = wrapped[1 + length + NONCE_BYTES :]
        try:
            return self._cipher(key_id, TRANSIT).decrypt(nonce, sealed, place.encode())
        except (InvalidTag, ValueError) as error:
            raise SealBroken("the seal does not fit") from error

    def subkey(self, salt: bytes, info: bytes) -> bytes:
        """Derive 32 bytes for a purpose from a secret salt (RFC 5869).

        Only the salt goes in: it is random and sealed at rest, so what is derived from it (the
        pseudonyms of a store's customers) stays the same when the keys of the ring change.
        """
        if len(salt) < KEY_BYTES:
            raise ValueError(f"a salt has {KEY_BYTES} bytes or more")
        return _derive(salt, info)

    def secret_for(self, key_id: str, purpose: str) -> bytes:
        """Derive 32 secret bytes for a purpose from a key of the ring; KeyError for an unknown id."""
        return _derive(self._keys[key_id], b"tolsey/secret/v1|" + purpose.encode())

    def signing_key(self, key_id: str) -> Ed25519PrivateKey:
        """Derive the signing key that goes with a key of the ring; KeyError for an unknown id."""
        return Ed25519PrivateKey.from_private_bytes(
            _derive(self._keys[key_id], b"tolsey/ed25519/v1")
        )

    def seal_key(self, key_id: str) -> ec.EllipticCurvePrivateKey:
        """Derive the key that seals PDFs, which goes with a key of the ring; KeyError for an unknown id.

        On P-256, which every reader of PDF knows; 16 bytes more than the curve's order keep the
        remainder even (FIPS 186-5, A.2.1).
        """
        wide = HKDF(
            hashes.SHA256(), length=KEY_BYTES + 16, salt=None, info=b"tolsey/seal-key/p256/v1"
        ).derive(self._keys[key_id])
        secret = int.from_bytes(wide, "big") % (P256_ORDER - 1) + 1
        return ec.derive_private_key(secret, ec.SECP256R1())

    def _cipher(self, key_id: str, table: str) -> AESGCM:
        """Use a key per table, so that no single key seals more than a table's worth of texts."""
        place = (key_id, table)
        if place not in self._ciphers:
            self._ciphers[place] = AESGCM(
                _derive(self._keys[key_id], b"tolsey/seal/v1|" + table.encode())
            )
        return self._ciphers[place]


def fingerprint(text: str) -> bytes:
    """Hash a random token the way it is kept: SHA-256 is enough for 256 random bits."""
    return hashlib.sha256(text.encode()).digest()
