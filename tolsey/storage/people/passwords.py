"""Passwords: Argon2id (RFC 9106), in a thread, a few at a time."""

import re
import secrets

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from cryptography.exceptions import InvalidKey
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

MEMORY_KIB = 19_456
ITERATIONS = 2
LANES = 1
SALT_BYTES = 16
HASH_BYTES = 32
AT_ONCE = 2
"""How many passwords are hashed at once: each takes a core and 19 MiB."""

PARAMETERS = f"$m={MEMORY_KIB},t={ITERATIONS},p={LANES}$"
NOBODY = f"$argon2id$v=19{PARAMETERS}c29tZXNhbHRzb21lc2FsdA$" + "A" * 43
"""A hash that no password has, so that an unknown user costs what a known one does."""

_limiter: RunVar[CapacityLimiter] = RunVar("password_limiter")


def _limit() -> CapacityLimiter:
    limiter = _limiter.get(None)
    if limiter is None:
        limiter = CapacityLimiter(AT_ONCE)
        _limiter.set(limiter)
    return limiter


def _derive(password: str) -> str:
    hasher = Argon2id(
        salt=secrets.token_bytes(SALT_BYTES),
        length=HASH_BYTES,
        iterations=ITERATIONS,
        lanes=LANES,
        memory_cost=MEMORY_KIB,
    )
    return hasher.derive_phc_encoded(password.encode())


def _verify(password: str, encoded: str) -> bool:
    try:
        Argon2id.verify_phc_encoded(password.encode(), encoded)
    except InvalidKey:
        return False
    return True


async def hash_password(password: str) -> str:
    """Hash a password, in the PHC text form."""
    return await to_thread.run_sync(_derive, password, limiter=_limit())


async def matches(password: str, encoded: str | None) -> bool:
    """Tell whether a password has a hash; without one it takes the same time and says no."""
    right = await to_thread.run_sync(_verify, password, encoded or NOBODY, limiter=_limit())
    return right and encoded is not None


def is_outdated(encoded: str) -> bool:
    """Tell whether a hash was made with other parameters than today's."""
    return re.search(r"\$m=\d+,t=\d+,p=\d+\$", encoded) is None or PARAMETERS not in encoded
