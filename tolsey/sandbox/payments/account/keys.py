"""API keys: secret ones that may do anything, restricted ones with permissions."""

from dataclasses import dataclass, field

from tolsey.sandbox.payments.account.refused import Refused


@dataclass(slots=True)
class Key:
    """A key of one account; a restricted one names permissions such as `charge_read`."""

    secret: str
    permissions: frozenset[str] = frozenset()
    expired: bool = False
    ip_refused: bool = field(default=False)

    @property
    def restricted(self) -> bool:
        """Tell whether the key may do only what it names."""
        return self.secret.startswith("rk_")

    def require(self, permission: str, account: str) -> None:
        """Refuse a request that the key does not allow (rules/payments#stand-in)."""
        if self.expired:
            raise Refused(
                f"Expired API Key provided: {masked(self.secret, 3)}",
                status=401,
                code="api_key_expired",
            )
        if self.ip_refused:
            raise Refused(
                f"The API key provided '{masked(self.secret, 4)}' does not allow requests from"
                " your IP address.",
                status=403,
            )
        if not self.restricted or self._allows(permission):
            return
        raise Refused(
            f"The provided key '{masked(self.secret, 4)}' does not have the required permissions"
            f" for this endpoint on account '{account}'. Having the 'rak_{permission}' permission"
            " would allow this request to continue.",
            status=403,
        )

    def _allows(self, permission: str) -> bool:
        """Tell whether the key holds a permission; one to write carries the one to read."""
        written = permission.removesuffix("_read") + "_write"
        return permission in self.permissions or written in self.permissions


def invalid(secret: str) -> Refused:
    """Refuse a key that is not known; the body carries no code."""
    if not secret:
        return Refused(
            "You did not provide an API key. You need to provide your API key in the"
            " Authorization header, using Bearer auth.",
            status=401,
        )
    return Refused(f"Invalid API Key provided: {masked(secret, 2)}", status=401)


def masked(secret: str, shown: int) -> str:
    """Hide a key but for its kind and its last characters."""
    kind, test, rest = [*secret.split("_", 2), "", ""][:3]
    if not rest:
        return "*" * max(len(secret) - shown, 0) + secret[-shown:]
    return f"{kind}_{test}_" + "*" * max(len(rest) - shown, 0) + rest[-shown:]
