"""The prompts that the server offers: which tools to call for a task, and what to report."""

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

1. Call get_store_summary and get_connection_status. Report these problems before anything else,
   because they mean that data may be missing or out of date: a token_state other than ok, missing
   scopes, and webhook topics that are not delivered.
2. Call get_sales_report for 30d by week. Then call list_orders to find orders that are unfulfilled
   or unpaid.
3. Call get_low_stock_report.
4. Call get_verified_revenue. Report the badge of each listing and any open flags.

If a scope is missing for a step, name the scope and continue with the next step. Report at most
seven findings, the most serious first, each with the figure that supports it. Never add amounts in
different currencies.
"""
REVIEW: Final = """
Review this store's sales for the last {period}.

1. Call get_sales_report for {period} by day, with compare_with set to previous. Call it again by
   source.
2. If facts_since is within the period, say so first: sales before that time are missing.
3. Compare each currency with the previous period. Report the best and the worst day, the share of
   sales that was refunded, and the sources that grew or shrank most.
4. If a figure is surprising, look for the cause with list_orders.
5. Say so when a difference is too small to be meaningful.

End with three recommended actions.
"""
RISK: Final = """
Find the products that this store will soon be unable to sell.

1. Call get_low_stock_report with threshold {threshold}, and read every page.
2. If a row does not say that its stock is tracked, use platform_query to read tracked of its
   inventoryItem. Leave out items whose stock is not tracked.
3. Group the rows by product. Distinguish between sold out, nearly sold out and oversold (stock below
   zero).
4. Call get_product for the ten most serious.
5. Call get_stock_forecast for variants that are still in stock but will run out first. Report its
   range of days, not a single date. Do not estimate a date for a variant that it does not list.

Answer with a table. Then say which products to reorder first, and why.
"""
NEXT: Final = """
Tell me what this store's launch needs next.

1. Call list_launch_milestones. Then call get_launch_milestone for each milestone that is blocked,
   that failed, or that a person can do now because it waits for no other milestone.
2. List first what a person has to do, where in the Shopify admin to do it, and why.
3. Then list the milestones that are blocked, each with the missing scope or setting.
4. Then list the milestones that run automatically.

If I say that I completed a step, call request_launch_probe and read the milestone again. Never report
a person's milestone as done before its status is approved.
"""


def prompts() -> Sequence[Prompt]:
    """List the prompts that the server offers."""
    return [
        Prompt(
            "store_health_check",
            "Check store health",
            "Checks the connection, sales, stock and verified revenue, and reports up to seven"
            " problems, the most serious first.",
            _fill(HEALTH),
        ),
        Prompt(
            "weekly_sales_review",
            "Review sales",
            "Compares the sales of a period with the period before, by day and by source, with"
            " refunds, and recommends three actions.",
            _fill(REVIEW, period=(_period, PERIODS[0])),
            (
                Argument(
                    "period",
                    "Period to review: 7d, 30d, 90d or 365d. The default is 7d.",
                    required=False,
                ),
            ),
            {"period": _complete_from(PERIODS)},
        ),
        Prompt(
            "inventory_risk",
            "Find stock at risk",
            "Finds products that are sold out, oversold or about to run out, and recommends what to"
            " reorder first.",
            _fill(RISK, threshold=(_threshold, str(FEW))),
            (
                Argument(
                    "threshold",
                    "Largest number of units in stock that counts as low, as a whole number."
                    f" The default is {FEW}.",
                    required=False,
                ),
            ),
            {"threshold": _complete_from(THRESHOLDS)},
        ),
        Prompt(
            "launch_next_steps",
            "Plan the next launch steps",
            "Lists what a person has to do next for the store's launch, what is blocked and why, and"
            " what runs automatically.",
            _fill(NEXT),
        ),
    ]


Checked = Callable[[str], str]


def _fill(
    text: str, **filled: tuple[Checked, str]
) -> Callable[[ToolCall, Mapping[str, str]], Awaitable[Sequence[Mapping[str, Any]]]]:
    """Return a prompt's text with its arguments validated, or with their defaults."""

    async def get(call: ToolCall, given: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
        del call
        values = {
            name: check(given[name]) if given.get(name) else default
            for name, (check, default) in filled.items()
        }
        filled_text = text.strip().format(**values)
        return [{"role": "user", "content": {"type": "text", "text": filled_text}}]

    return get


def _complete_from(values: Sequence[str]) -> Callable[[ToolCall, str], Awaitable[Sequence[str]]]:
    async def complete(call: ToolCall, typed: str) -> Sequence[str]:
        del call
        return [value for value in values if value.startswith(typed)]

    return complete


def _period(text: str) -> str:
    if text not in PERIODS:
        raise RpcError(wire.INVALID_PARAMS, f"period is invalid. Send one of {', '.join(PERIODS)}.")
    return text


def _threshold(text: str) -> str:
    """Accept digits only, so that an argument cannot add text to the prompt."""
    if not (text.isascii() and text.isdecimal() and len(text) <= LAST_DIGITS):
        raise RpcError(wire.INVALID_PARAMS, "threshold is invalid. Send an integer.")
    return str(min(int(text), LARGEST_THRESHOLD))
