"""Why a milestone is not done, told from what the platform and the store say (rules/launch#retries)."""

from datetime import datetime
from typing import Any, Final

from tolsey.actors.ports import (
    PlatformDenied,
    PlatformError,
    PlatformThrottled,
    PlatformUnreachable,
)
from tolsey.actors.refusals import MissingCredential, Refusal
from tolsey.actors.store.grants import is_lasting
from tolsey.actors.store.launch.graph import MilestoneStop
from tolsey.actors.store.launch.messages import LaunchWriteEnded
from tolsey.actors.store.messages import store
from tolsey.runtime.decision import Tell
from tolsey.storage.records.commerce.agent_operation import AgentOperation, OperationState

LAUNCH_CLIENT: Final = "launch"
"""What the operations of a launch have in the place of an agent's client."""
FORBIDDEN: Final = 403
UNAUTHORIZED: Final = 401
SHOP_AWAY: Final = frozenset({402, 423})
AGAIN: Final = frozenset({"version_changed", "contended", "not_applied", "shop_changed"})
"""Why a change was not made that may be made when the shop is looked at again."""
COVERED: Final = frozenset(
    {
        "DUPLICATE_REGION_MARKET",
        "DUPLICATE_UNIQUE_MARKET",
        "SHOPIFY_COOKIE_BANNER_NOT_DISABLED",
        "TAKEN",
        "NO_EXTENSION",
    }
)
"""What the platform says of what is there already, and of what an app of the merchant's own cannot have."""
PLAN: Final = frozenset(
    {
        "NOT_ENTITLED_TO_ACTIVATE_MARKET",
        "SHOP_REACHED_PLAN_MARKETS_LIMIT",
        "THEME_LIMITED_PLAN",
        "ZIP_TOO_LARGE",
        "THEME_CREATION_NOT_ALLOWED_FOR_THEME_LIMITED_PLAN",
    }
)
"""What the platform says of what the shop's plan does not have."""


def tell_launch(
    ended: AgentOperation, at: datetime, refusal: Refusal | None = None, **said: Any
) -> tuple[Tell, ...]:
    """Let the launch know what became of a change that it asked for; nothing for those of agents."""
    if ended.client_id != LAUNCH_CLIENT:
        return ()
    fields = refusal.fields if refusal is not None else {}
    message = LaunchWriteEnded(
        milestone=ended.tool,
        operation_id=ended.operation_id,
        subject=ended.subject,
        state=ended.state,
        version=ended.version,
        code=ended.code,
        detail=ended.detail,
        platform_status=fields.get("platformStatus"),
        scope=fields.get("scope"),
        wait_seconds=fields.get("retryAfter"),
        at=at,
        **said,
    )
    return (Tell(store(ended.store_id), message, key=f"launch-write:{ended.operation_id}"),)


def stop_of_error(error: Refusal | PlatformError) -> MilestoneStop:
    """Say what a refusal of a look at the shop means for a milestone."""
    if isinstance(error, PlatformUnreachable):
        is_throttled = isinstance(error, PlatformThrottled)
        return MilestoneStop(
            kind="throttled" if is_throttled else "retryable",
            reason="throttled" if is_throttled else "commerce_unreachable",
            detail=error.message,
            wait_seconds=error.retry_after,
        )
    if isinstance(error, PlatformDenied):
        return _denied(error.status, error.message, error.missing_scope)
    if isinstance(error, MissingCredential):
        return _blocked("missing_credential", error.detail)
    if isinstance(error, Refusal) and is_lasting(error):
        return _blocked("token_unavailable", error.detail)
    text = error.detail if isinstance(error, Refusal) else error.message
    return MilestoneStop(kind="retryable", reason="unavailable", detail=text)


def stop_of_write(ended: LaunchWriteEnded) -> MilestoneStop | None:
    """Say what the end of a change means for its milestone; None when the shop is as was wanted."""
    detail = (
        ended.detail or "Shopify didn't apply this change. Check the shop, then run this again."
    )
    if ended.state == OperationState.APPLIED or ended.platform_code in COVERED:
        return None
    if ended.state == OperationState.UNCLEAR:
        # What stays unknown after all looks is not sent again (rules/launch#retries).
        return MilestoneStop(kind="permanent", reason="outcome_unknown", detail=detail)
    if ended.state == OperationState.NOT_SENT:
        return _not_sent(ended, detail)
    if ended.platform_code in PLAN:
        return _blocked("plan", detail)
    if ended.code in AGAIN:
        return MilestoneStop(kind="retryable", reason=ended.code or "", detail=detail)
    return MilestoneStop(kind="permanent", reason=ended.code or "rejected", detail=detail)


def _not_sent(ended: LaunchWriteEnded, detail: str) -> MilestoneStop:
    if ended.platform_status is not None:
        return _denied(ended.platform_status, detail, ended.scope)
    if ended.code in {"token_unavailable", "disconnected", "never_connected"}:
        return _blocked("token_unavailable", detail)
    if ended.code == "missing_credential":
        return _blocked("missing_credential", detail)
    return MilestoneStop(
        kind="throttled" if ended.is_throttled else "retryable",
        reason="throttled" if ended.is_throttled else ended.code or "unavailable",
        detail=detail,
        wait_seconds=ended.wait_seconds,
    )


def _denied(status: int, detail: str, scope: str | None) -> MilestoneStop:
    if status == UNAUTHORIZED:
        return _blocked("token_unavailable", detail)
    if status in SHOP_AWAY:
        return _blocked("shop_unavailable", detail)
    if status == FORBIDDEN:
        # A permission that is named can be granted by the merchant; what else is denied needs the
        # platform's own word.
        reason = "scope_missing" if scope else "platform_exemption_required"
        return MilestoneStop(kind="blocked", reason=reason, detail=detail, scope=scope)
    return MilestoneStop(kind="permanent", reason="platform_denied", detail=detail)


def _blocked(reason: str, detail: str) -> MilestoneStop:
    return MilestoneStop(kind="blocked", reason=reason, detail=detail)
