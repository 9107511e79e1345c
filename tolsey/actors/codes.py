"""Every error code that the service answers with: its statuses, and what it means for whoever gets it.

Codes are for programs and stay as they are (rules/requests#errors: none is removed or renamed without
notice); the sentence beside an answer is of its case, the one here is of the code. `docs/codes.md` shows
this list, and `/openapi.json` names it.
"""

import sys
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Code:
    """What a code stands for; `statuses` is empty where only an operation's outcome carries it."""

    statuses: tuple[int, ...]
    meaning: str


def _code(*statuses: int, means: str) -> Code:
    return Code(statuses, means)


ACCESS: Final = {
    "account_deleted": _code(403, means="The account was deleted."),
    "bad_form": _code(403, means="The form is not one that the page gave; open the page again."),
    "banned": _code(403, means="An operator has closed this account."),
    "email_taken": _code(409, means="An account with this address exists: sign in."),
    "forbidden": _code(403, means="Your role, or your organization, may not do this."),
    "foreign_origin": _code(403, means="Another site's page sent this with your cookie."),
    "invalid_token": _code(
        400, means="The link is used up, too old, or not ours: ask for a new one."
    ),
    "invalid_credentials": _code(401, means="The address or the password is wrong."),
    "invitation_over": _code(
        410, means="The invitation is no longer valid (`state` says why): ask for a new one."
    ),
    "last_owner": _code(
        409, means="An organization keeps one owner: make somebody else owner first."
    ),
    "missing_scope": _code(
        403, means="The agent or the key was not allowed this: give it the scope that is named."
    ),
    "too_many_keys": _code(409, means="You have as many live keys as there can be: end one."),
    "too_many_invitations": _code(
        409, means="Too many invitations are waiting: withdraw some of them."
    ),
    "unauthorized": _code(401, means="Sign in, or send a valid token."),
    "wrong_address": _code(
        403, means="The invitation is for another address: sign in with that one."
    ),
}
REQUESTS: Final = {
    "ambiguous_length": _code(
        400,
        means="The request says its length in two ways: send `Content-Length` or chunks, not both.",
    ),
    "bad_request": _code(400, means="The request cannot be read."),
    "conflict": _code(409, means="It is not in a state that allows this: look at it again."),
    "duplicate": _code(409, means="This has been done already."),
    "http_version_not_supported": _code(505, means="Use HTTP/1.1 or HTTP/2."),
    "idempotency_key_reused": _code(
        422, means="The key belongs to another request: use a new one."
    ),
    "invalid_cursor": _code(
        400, means="The cursor is not one of this list: begin at its first page."
    ),
    "invalid_idempotency_key": _code(
        400, means="An Idempotency-Key has 1 to 255 visible characters."
    ),
    "invalid_request": _code(422, means="A field is not as documented: `errors` names it."),
    "malformed_json": _code(400, means="The body is no JSON."),
    "method_not_allowed": _code(405, means="This address takes another method: see `Allow`."),
    "not_built": _code(501, means="This version of the service has not built it yet."),
    "not_found": _code(404, means="There is no such thing, or it is not yours."),
    "nul_in_form": _code(422, means="A field holds the character NUL: leave it out."),
    "payload_too_large": _code(413, means="The body is too large."),
    "request_header_fields_too_large": _code(431, means="The head of the request is too large."),
    "request_in_progress": _code(
        409, means="A request with this key is still running: try again in a moment."
    ),
    "too_many_reports": _code(
        429, means="Your organization is reading several reports at once: wait a second."
    ),
    "too_many_requests": _code(
        429, means="The limit is reached: wait as long as `Retry-After` says."
    ),
    "unprocessable": _code(422, means="The request is well formed and cannot be carried out."),
    "unsupported_media_type": _code(415, means="Send JSON, with its content type."),
    "version_changed": _code(409, means="It changed since you looked: look again."),
}
SERVICE: Final = {
    "actor_busy": _code(
        409, means="Messages or commits still wait for this actor: try again in a moment."
    ),
    "deadline_exceeded": _code(
        503, 504, means="No answer in time; what was asked may still happen."
    ),
    "internal_error": _code(500, means="Our fault; the request id finds the cause in the log."),
    "missing_credential": _code(
        503, means="Whoever runs this service must set the variable that is named."
    ),
    "overloaded": _code(503, means="The service is busy: try again after `Retry-After`."),
    "process_dead": _code(409, means="That process does not answer: choose another."),
    "process_draining": _code(409, means="That process is about to end: choose another."),
    "process_unready": _code(
        409, means="That process does not serve yet: wait, or choose another."
    ),
    "shard_unavailable": _code(
        503, means="The process that holds this is being replaced: try again in a moment."
    ),
    "storage_overdue": _code(503, means="The database took too long: ask for less at once."),
    "storage_unavailable": _code(
        503, means="The database cannot be reached: try again in a moment."
    ),
    "files_unavailable": _code(503, means="Files are out of reach: ask again in a minute."),
    "unknown_job": _code(404, means="There is no job of this name."),
    "unknown_process": _code(422, means="There is no such process."),
    "vector_purge_failed": _code(
        503, means="The store's memory could not be deleted, so nothing was: try again."
    ),
}
MONEY: Final = {
    "already_redeemed": _code(409, means="Your organization, or you, have used a code already."),
    "already_refunded": _code(409, means="This payment has been refunded."),
    "amount_out_of_range": _code(422, means="Credits are bought for 5 to 5,000 USD."),
    "change_in_progress": _code(
        409, means="Another change of the plan is on its way: ask again when it is done."
    ),
    "card_refused": _code(402, means="The card was refused: `processorCode` says why."),
    "hold_closed": _code(409, means="This hold has ended, or there never was one."),
    "insufficient_credits": _code(
        402, means="Your credits do not cover this: buy more, or ask for less."
    ),
    "invalid_amount": _code(422, means="The amount must be more than zero; a hold can only grow."),
    "invalid_lease": _code(422, means="The lease must end later than it begins."),
    "no_customer": _code(
        409,
        means="You have bought nothing yet, so there is nothing to manage: choose a plan first.",
    ),
    "no_subscription": _code(409, means="There is no subscription."),
    "nothing_to_refund": _code(409, means="Nothing of this payment is left to give back."),
    "onboarding_unfinished": _code(
        409, means="Finish the onboarding of your payout account first."
    ),
    "own_code": _code(403, means="This is your own code."),
    "own_organization": _code(403, means="The code's owner belongs to your organization."),
    "payment_disputed": _code(
        409, means="The payment is disputed, so the bank decides whose the money is."
    ),
    "payment_due": _code(409, means="An invoice is open: pay it first, at `invoiceUrl`."),
    "payment_required": _code(
        402, means="Your plan does not include this: `plan` names one that does."
    ),
    "payout_account_required": _code(403, means="Connect a payout account first."),
    "plan_by_contract": _code(409, 422, means="This plan is agreed by a contract: talk to us."),
    "plan_not_sold": _code(
        422, means="The free plan cannot be bought: cancel your subscription instead."
    ),
    "plan_unchanged": _code(409, means="You have this plan already."),
    "processor_busy": _code(429, means="The payment processor asks to wait: see `Retry-After`."),
    "processor_rejected": _code(422, means="The payment processor refused: see `processorCode`."),
    "processor_unreachable": _code(502, means="The payment processor is out of reach: try again."),
    "refund_credits_used": _code(
        409, means="Some of the credits of this payment have been spent, so it cannot be refunded."
    ),
    "refund_messages_sent": _code(
        409, means="Messages have been sent since this payment, so it cannot be refunded."
    ),
    "refund_not_newest": _code(409, means="Only the newest payment can be refunded."),
    "refund_too_late": _code(409, means="The time for a refund has passed."),
    "store_limit": _code(
        402, means="Your plan includes no more stores: `plan` names one that does."
    ),
    "subscription_exists": _code(409, means="There is a subscription: change it instead."),
    "subscription_not_active": _code(
        409, means="The subscription cannot be changed as it is now: see its `status`."
    ),
    "too_many_codes": _code(409, means="You have as many codes as one person may have."),
    "unknown_cadence": _code(422, means="A plan is paid monthly or yearly."),
    "unknown_plan": _code(422, means="There is no such plan."),
    "workflow_limit": _code(
        402,
        means="Your plan runs no more workflows at a time: wait for one to end, or choose another plan.",
    ),
    "yearly_not_open": _code(
        403, means="You cannot pay for a year yet: `yearlyFrom` says when you can."
    ),
}
SELLING: Final = {
    "account_not_live": _code(422, means="The account cannot take payments yet."),
    "development_store": _code(
        422, means="A development or trial shop cannot prove revenue: use one on a paid plan."
    ),
    "incomplete_listing": _code(422, means="Fields are missing before it can be reviewed."),
    "invalid_transition": _code(409, means="It cannot do that now: `allowed` lists what it can."),
    "missing_permission": _code(
        422, means="The key lacks a permission, which follows after a colon: add it."
    ),
    "no_listing": _code(409, means="This store has no listing yet."),
    "not_a_restricted_key": _code(422, means="A restricted key begins with rk_live_."),
    "publishable_key": _code(
        422, means="A publishable key may read nothing: make a restricted one."
    ),
    "reason_required": _code(422, means="A rejection needs a reason."),
    "review_required": _code(403, means="An administrator must approve it before this."),
    "secret_key_refused": _code(422, means="A secret key may do anything: make a restricted one."),
    "source_in_use": _code(409, means="Another listing is proven by this shop or account already."),
    "test_mode_key": _code(
        422, means="A key of the test mode proves nothing: make one in live mode."
    ),
}
PLATFORM: Final = {
    "api_version_too_old": _code(422, means="Verified revenue needs COMMERCE_API_VERSION 2026-07."),
    "commerce_rejected": _code(422, means="The shop's platform refused: the sentence is its own."),
    "commerce_unreachable": _code(
        502, 503, means="The shop's platform is out of reach: try again."
    ),
    "disconnected": _code(503, means="The store was disconnected from its shop: connect it again."),
    "never_connected": _code(503, means="Connect the store to a shop first."),
    "platform_denied": _code(400, means="The platform refused the custom app's credentials."),
    "store_deleted": _code(409, means="The store is being deleted."),
    "token_unavailable": _code(
        503, means="The shop no longer accepts our access: connect the store again."
    ),
}
AGENTS: Final = {
    "answer_too_large": _code(422, means="The answer is too large: ask for less at once."),
    "contended": _code(means="It changed each time this was tried: look at it, then try again."),
    "conversation_too_long": _code(422, means="The conversation is too long: begin a new one."),
    "declined": _code(409, means="The user did not confirm the change."),
    "not_applied": _code(means="The platform never answered, and nothing changed in the shop."),
    "note_full": _code(means="The order's note has no room for more."),
    "operation_pending": _code(means="It is not done yet: ask `get_operation` for how it ended."),
    "plan_expired": _code(422, means="The plan is too old: plan it anew with `dry_run`."),
    "plan_invalid": _code(
        422, means="The plan token is not of this change: plan it with `dry_run`."
    ),
    "plan_required": _code(422, means="Call with `dry_run` first, then with its `plan_token`."),
    "quantity_changed": _code(means="The stock is not what it was compared with: look again."),
    "query_not_allowed": _code(422, means="The query is not one that may be asked."),
    "query_too_costly": _code(422, means="The query costs too much: ask for less at once."),
    "request_closed": _code(404, means="The request for consent is over: begin again in the app."),
    "too_many_tags": _code(means="The order has no room for more tags."),
    "shop_changed": _code(means="The store was connected to another shop before this was done."),
    "unclear": _code(means="The shop is neither as it was nor as you asked: look in the shop."),
    "unknown": _code(
        means="It is not known whether this happened: look in the shop before you repeat it."
    ),
    "unreadable": _code(
        means="This was asked of another version and can no longer be read: ask again."
    ),
}
CODES: Final = {**ACCESS, **REQUESTS, **SERVICE, **MONEY, **SELLING, **PLATFORM, **AGENTS}
INTRODUCTION: Final = (
    "Programs read `code`, people `detail`. A code keeps its meaning; new ones may be added, so treat one that\n"
    "you do not know by its status. An outcome is what an agent's operation ended with; no answer has it as a status.\n"
    "This page is made from `tolsey/actors/codes.py`: `python -m tolsey.actors.codes > docs/codes.md`."
)
GROUPS: Final = {
    "Access": ACCESS,
    "Requests": REQUESTS,
    "The service": SERVICE,
    "Money": MONEY,
    "Selling": SELLING,
    "The shop's platform": PLATFORM,
    "Agents": AGENTS,
}


def as_page() -> str:
    """Write the list as a page of the documentation: one table for each group."""
    parts = ["# Error codes", INTRODUCTION]
    for title, codes in GROUPS.items():
        rows = (
            f"| `{name}` | {', '.join(map(str, one.statuses)) or '(an outcome)'} | {one.meaning} |"
            for name, one in sorted(codes.items())
        )
        parts.append(
            "\n".join([f"## {title}", "", "| code | status | meaning |", "|---|---|---|", *rows])
        )
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.stdout.write(as_page())
