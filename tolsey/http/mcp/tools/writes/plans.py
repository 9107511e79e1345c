"""Plans: a change as it was shown before it is made, in a token that opens for this very change only.

A plan token is sealed for who asked, the store, the tool and the arguments; inside are the version of
what was shown and when the plan ends (rules/agents#tools).
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from tolsey.actors.refusals import Unprocessable
from tolsey.http.mcp.gate import Principal, name_of
from tolsey.storage.sealing.sealed import SealBroken, Vault

LIFE: Final = timedelta(minutes=5)
PLACE: Final = "mcp_plans"


@dataclass(frozen=True, slots=True)
class WritePlan:
    """A change as it was shown: what it is of, and until when it may be made."""

    token: str
    expires_at: datetime


class Plans:
    """Gives plan tokens out and takes them back."""

    def __init__(self, vault: Vault, clock: Callable[[], datetime]) -> None:
        self._vault = vault
        self._clock = clock

    def give(self, principal: Principal, digest: str, version: str) -> WritePlan:
        """Seal the version that was shown."""
        until = self._clock() + LIFE
        kept = json.dumps({"version": version, "until": until.timestamp()})
        token = self._vault.seal(
            kept,
            table=PLACE,
            column="token",
            row=_bound(principal, digest),
            tenant=principal.store_id,
        )
        return WritePlan(token, until)

    def take(self, principal: Principal, digest: str, token: str) -> str:
        """Open a token and answer the version that was shown."""
        try:
            kept = json.loads(
                self._vault.open(
                    token,
                    table=PLACE,
                    column="token",
                    row=_bound(principal, digest),
                    tenant=principal.store_id,
                )
            )
        except SealBroken as error:
            raise Unprocessable(
                "The plan_token doesn't belong to this change. Call with dry_run to get the"
                " right one.",
                code="plan_invalid",
            ) from error
        if kept["until"] < self._clock().timestamp():
            raise Unprocessable(
                "The plan_token has expired. Call again with dry_run to get a new one.",
                code="plan_expired",
            )
        return str(kept["version"])


def digest_of(tool: str, arguments: Mapping[str, Any]) -> str:
    """Name a tool with its arguments in one text."""
    text = json.dumps([tool, dict(arguments)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _bound(principal: Principal, digest: str) -> str:
    return f"{name_of(principal)} {digest}"
