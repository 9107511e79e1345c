"""Words to begin with: what to look at, with which tools, and what to say of it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from tolsey.http.mcp import wire
from tolsey.http.mcp.call import ToolCall
from tolsey.http.mcp.registry import Argument, Prompt
from tolsey.http.mcp.tools.reads.inventory import FEW, LARGEST_THRESHOLD
from tolsey.http.mcp.wire import RpcError

LAST_DIGITS: Final = len(str(LARGEST_THRESHOLD))
THRESHOLDS: Final = ("0", "5", "10", "25", "50", "100")
PERIODS: Final = ("7d", "30d", "90d", "365d")

HEALTH: Final = """
Check the health of this store and tell me what needs attention first.

1. Read get_store_summary and get_connection_status. A token_state other than ok, missing scopes or
   topics that are not delivered come before everything else: data may be old or absent.
2. Read get_sales_report for 30d by week, and list_orders for what is unfulfilled or unpaid.
3. Read get_low_stock_report.
4. Read get_verified_revenue and say which badge the listings have and which flags stand.

If a scope is missing for a step, say which one and go on. Answer with at most seven findings, the
gravest first, each with the figure it rests on. Never add amounts of different currencies.
"""
REVIEW: Final = """
Review this store's sales of the last {period}.

Read get_sales_report for {period} by day and again by source. If facts_since lies within the period,
say so first: what was sold before it is missing. Compare with the period before (compare_with previous), by
currency. Name the best and the worst day, what share was refunded, and the sources that grew or
shrank most. Look into list_orders where a figure surprises. Say plainly when a difference is too small
to mean anything. End with three things to do next.
"""
RISK: Final = """
Find what this store will soon be unable to sell.

Read every page of get_low_stock_report with threshold {threshold}. Where a row does not say that it is
tracked, ask platform_query for tracked of its inventoryItem, and leave out what is not. Group by product,
and tell apart what is sold out, what is nearly so, and what is oversold (below zero). For the gravest ten
read get_product. Read get_stock_forecast for what is still there and will run out first: give its range
of days, not one date, and invent none for what it does not name. Answer with a table, then with what to order again first and why.
"""
NEXT: Final = """
Tell me what this store's launch needs next.

Read list_launch_milestones, and get_launch_milestone for those that are blocked, failed or a person's and
waiting for nothing. Say first what a person has to do, where in the shop's admin and why, then what is blocked by
which missing scope or setting, then what runs by itself. If I say that I did a step, use request_launch_probe
and read it again; never say of a person's step that it is done before it is approved.
"""


def prompts() -> Sequence[Prompt]:
    """List them."""
    return [
        Prompt(
            "store_health_check",
            "Check the store's health",
            "Goes through connection, sales, stock and verified revenue.",
            _saying(HEALTH),
        ),
        Prompt(
            "weekly_sales_review",
            "Review sales",
            "Compares a period with itself: by day, by source, with what was given back.",
            _saying(REVIEW, period=(_period, PERIODS[0])),
            (Argument("period", "7d (usual), 30d, 90d or 365d", required=False),),
            {"period": _proposing(PERIODS)},
        ),
        Prompt(
            "inventory_risk",
            "Find stock at risk",
            "Finds what is sold out or nearly so.",
            _saying(RISK, threshold=(_threshold, str(FEW))),
            (Argument("threshold", f"How few are few; {FEW} if not said", required=False),),
            {"threshold": _proposing(THRESHOLDS)},
        ),
        Prompt(
            "launch_next_steps",
            "See what the launch needs",
            "Tells a person's next steps, what is blocked and why, and what runs by itself.",
            _saying(NEXT),
        ),
    ]


Checked = Callable[[str], str]


def _saying(
    text: str, **filled: tuple[Checked, str]
) -> Callable[[ToolCall, Mapping[str, str]], Awaitable[Sequence[Mapping[str, Any]]]]:
    """Fill a text with the arguments, each checked, or its usual value."""

    async def get(call: ToolCall, given: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
        del call
        values = {
            name: check(given[name]) if given.get(name) else usual
            for name, (check, usual) in filled.items()
        }
        said = text.strip().format(**values)
        return [{"role": "user", "content": {"type": "text", "text": said}}]

    return get


def _proposing(values: Sequence[str]) -> Callable[[ToolCall, str], Awaitable[Sequence[str]]]:
    async def proposed(call: ToolCall, typed: str) -> Sequence[str]:
        del call
        return [one for one in values if one.startswith(typed)]

    return proposed


def _period(text: str) -> str:
    if text not in PERIODS:
        raise RpcError(wire.INVALID_PARAMS, f"period is invalid. Send one of {', '.join(PERIODS)}.")
    return text


def _threshold(text: str) -> str:
    """Take a number only, so that no other words come into ours."""
    if not (text.isascii() and text.isdecimal() and len(text) <= LAST_DIGITS):
        raise RpcError(wire.INVALID_PARAMS, "threshold is invalid. Send an integer.")
    return str(min(int(text), LARGEST_THRESHOLD))
