"""Every error code that the service answers with: its statuses, and what it means for whoever gets it.

Codes are for programs and stay as they are (rules/requests#errors: none is removed or renamed without
notice); the sentence beside an answer is of its case, the one here is of the code. `docs/codes.md` shows
this list, and `/openapi.json` names it.
"""

import sys
from typing import Final


class Code:
    """What a code stands for; `statuses` is empty where only an operation's outcome carries it."""

    def __init__(self, meaning: str, *statuses: int) -> None:
        self.meaning = meaning
        self.statuses = statuses


ACCESS: Final = {
    "account_deleted": Code("The account was deleted.", 403),
    "bad_form": Code("The form is not one that the page gave; open the page again.", 403),
    "banned": Code("An operator has closed this account.", 403),
    "bot_refused": Code("Bots are not let in where people sign in.", 403),
    "email_taken": Code("An account with this address exists: sign in.", 409),
    "forbidden": Code("Your role, or your organization, may not do this.", 403),
    "foreign_origin": Code("Another site's page sent this with your cookie.", 403),
    "invalid_token": Code("The link is used up, too old, or not ours: ask for a new one.", 400),
    "invalid_credentials": Code("The address or the password is wrong.", 401),
    "invitation_over": Code(
        "The invitation is no longer valid (`state` says why): ask for a new one.", 410
    ),
    "not_in_deletion": Code("This account is not being deleted: sign in.", 409),
    "open_deals": Code("A deal of yours is open: end it first.", 409),
    "owns_shared_organization": Code(
        "You are the only owner of an organization with other members: make one of them owner first.",
        409,
    ),
    "last_owner": Code("An organization keeps one owner: make somebody else owner first.", 409),
    "missing_scope": Code(
        "The agent or the key was not allowed this: give it the scope that is named.", 403
    ),
    "too_many_keys": Code("You have as many live keys as there can be: end one.", 409),
    "too_many_invitations": Code("Too many invitations are waiting: withdraw some of them.", 409),
    "unauthorized": Code("Sign in, or send a valid token.", 401),
    "wrong_address": Code("The invitation is for another address: sign in with that one.", 403),
}
REQUESTS: Final = {
    "ambiguous_length": Code(
        "The request says its length in two ways: send `Content-Length` or chunks, not both.", 400
    ),
    "ambiguous_host": Code("The request names its host more than once: name one.", 400),
    "misdirected_request": Code("This service has no such host: call it by its own address.", 421),
    "bad_request": Code("The request cannot be read.", 400),
    "confirmation_required": Code(
        "This cannot be taken back: send it again with `confirmed` once a person has said so.", 409
    ),
    "steps_open": Code(
        "Something of this request is not done yet: carry out its pending steps first.", 409
    ),
    "conflict": Code("It is not in a state that allows this: look at it again.", 409),
    "duplicate": Code("This has been done already.", 409),
    "http_version_not_supported": Code("Use HTTP/1.1 or HTTP/2.", 505),
    "idempotency_key_reused": Code("The key belongs to another request: use a new one.", 422),
    "invalid_cursor": Code("The cursor is not one of this list: begin at its first page.", 400),
    "invalid_idempotency_key": Code("An Idempotency-Key has 1 to 255 visible characters.", 400),
    "invalid_payload": Code("The payload is none of this message: `detail` says where.", 422),
    "message_not_in_journal": Code(
        "The actor's journal has no such message: it keeps a week, and only what changed something.",
        404,
    ),
    "message_unknown": Code(
        "This version does not know the message: replay it as it is, when one does.", 409
    ),
    "invalid_request": Code("A field is not as documented: `errors` names it.", 422),
    "malformed_json": Code("The body is no JSON.", 400),
    "method_not_allowed": Code("This address takes another method: see `Allow`.", 405),
    "not_found": Code("There is no such thing, or it is not yours.", 404),
    "nul_in_form": Code("A field holds the character NUL: leave it out.", 422),
    "payload_too_large": Code("The body is too large.", 413),
    "request_header_fields_too_large": Code("The head of the request is too large.", 431),
    "request_in_progress": Code(
        "A request with this key is still running: try again in a moment.", 409
    ),
    "too_many_fields": Code("A form can have at most 1,000 fields: send fewer fields.", 400),
    "too_many_reports": Code(
        "Your organization is reading several reports at once: wait a second.", 429
    ),
    "too_many_requests": Code("The limit is reached: wait as long as `Retry-After` says.", 429),
    "unprocessable": Code("The request is well formed and cannot be carried out.", 422),
    "unsupported_media_type": Code("Send JSON, with its content type.", 415),
    "memory_full": Code(
        "The store remembers as much as it can (`limit`): delete something first.", 409
    ),
    "version_changed": Code("It changed since you looked: look again.", 409),
}
SERVICE: Final = {
    "actor_busy": Code(
        "Messages or commits still wait for this actor: try again in a moment.", 409
    ),
    "deadline_exceeded": Code("No answer in time; what was asked may still happen.", 503, 504),
    "internal_error": Code("Our fault; the request id finds the cause in the log.", 500),
    "missing_credential": Code(
        "Whoever runs this service must set the variable that is named.", 503
    ),
    "overloaded": Code("The service is busy: try again after `Retry-After`.", 503),
    "process_dead": Code("That process does not answer: choose another.", 409),
    "process_draining": Code("That process is about to end: choose another.", 409),
    "process_unready": Code("That process does not serve yet: wait, or choose another.", 409),
    "shard_unavailable": Code(
        "The process that holds this is being replaced: try again in a moment.", 503
    ),
    "storage_overdue": Code("The database took too long: ask for less at once.", 503),
    "unavailable": Code(
        "Something it takes is out of reach or in use: try again in a moment.", 503
    ),
    "storage_unavailable": Code("The database cannot be reached: try again in a moment.", 503),
    "files_unavailable": Code("Files are out of reach: ask again in a minute.", 503),
    "unknown_job": Code("There is no job of this name.", 404),
    "unknown_process": Code("There is no such process.", 422),
    "vector_purge_failed": Code(
        "The store's memory could not be deleted, so nothing was: try again.", 503
    ),
}
MONEY: Final = {
    "already_redeemed": Code("Your organization, or you, have used a code already.", 409),
    "already_refunded": Code("This payment has been refunded.", 409),
    "amount_out_of_range": Code("Credits are bought for 5 to 5,000 USD.", 422),
    "change_in_progress": Code(
        "Another change of the plan is on its way: ask again when it is done.", 409
    ),
    "card_refused": Code("The card was refused: `processorCode` says why.", 402),
    "hold_closed": Code("This hold has ended, or there never was one.", 409),
    "insufficient_credits": Code("Your credits do not cover this: buy more, or ask for less.", 402),
    "invalid_amount": Code("The amount must be more than zero; a hold can only grow.", 422),
    "invalid_lease": Code("The lease must end later than it begins.", 422),
    "no_customer": Code(
        "You have bought nothing yet, so there is nothing to manage: choose a plan first.", 409
    ),
    "no_subscription": Code("There is no subscription.", 409),
    "nothing_to_refund": Code("Nothing of this payment is left to give back.", 409),
    "onboarding_unfinished": Code("Finish the onboarding of your payout account first.", 409),
    "own_code": Code("This is your own code.", 403),
    "own_organization": Code("The code's owner belongs to your organization.", 403),
    "payment_disputed": Code(
        "The payment is disputed, so the bank decides whose the money is.", 409
    ),
    "payment_due": Code("An invoice is open: pay it first, at `invoiceUrl`.", 409),
    "payment_required": Code("Your plan does not include this: `plan` names one that does.", 402),
    "tax_form_required": Code("File the payee's tax form, and say where it is.", 409),
    "payout_account_required": Code("Connect a payout account first.", 403),
    "plan_by_contract": Code("This plan is agreed by a contract: talk to us.", 409, 422),
    "plan_not_sold": Code("The free plan cannot be bought: cancel your subscription instead.", 422),
    "plan_unchanged": Code("You have this plan already.", 409),
    "processor_busy": Code("The payment processor asks to wait: see `Retry-After`.", 429),
    "processor_rejected": Code("The payment processor refused: see `processorCode`.", 422),
    "processor_unreachable": Code("The payment processor is out of reach: try again.", 502),
    "refund_credits_used": Code(
        "Some of the credits of this payment have been spent, so it cannot be refunded.", 409
    ),
    "refund_messages_sent": Code(
        "Messages have been sent since this payment, so it cannot be refunded.", 409
    ),
    "refund_not_newest": Code("Only the newest payment can be refunded.", 409),
    "refund_too_late": Code("The time for a refund has passed.", 409),
    "store_limit": Code("Your plan includes no more stores: `plan` names one that does.", 402),
    "subscription_exists": Code("There is a subscription: change it instead.", 409),
    "subscription_not_active": Code(
        "The subscription cannot be changed as it is now: see its `status`.", 409
    ),
    "too_many_codes": Code("You have as many codes as one person may have.", 409),
    "unknown_cadence": Code("A plan is paid monthly or yearly.", 422),
    "unknown_plan": Code("There is no such plan.", 422),
    "workflow_limit": Code(
        "Your plan runs no more workflows at a time: wait for one to end, or choose another plan.",
        402,
    ),
    "yearly_not_open": Code("You cannot pay for a year yet: `yearlyFrom` says when you can.", 403),
}
SELLING: Final = {
    "deal_open": Code("You have a deal about this listing already: go on with that one.", 409),
    "guard_failed": Code(
        "Something else has to happen before; `allowed` lists what you can do now.", 409
    ),
    "file_of_deal": Code(
        "The file belongs to a deal's data room and can't be deleted: read it in the deal.", 409
    ),
    "file_refused": Code(
        "The file is not what it claims to be, or not of a type that is taken.", 422
    ),
    "revenue_moved": Code(
        "Verified revenue moved by more than 10% since the letter of intent: look at both figures, and sign with"
        " `revenueAcknowledged: true`.",
        409,
    ),
    "document_changed": Code("The document is not the one you were shown: look at it again.", 409),
    "signature_open": Code("A document of this deal waits for signatures already.", 409),
    "not_for_sale": Code("This business is not for sale now.", 409),
    "own_listing": Code("This is a listing of your own.", 409),
    "account_not_live": Code("The account cannot take payments yet.", 422),
    "development_store": Code(
        "A development or trial shop cannot prove revenue: use one on a paid plan.", 422
    ),
    "incomplete_listing": Code("Fields are missing before it can be reviewed.", 422),
    "invalid_transition": Code("It cannot do that now: `allowed` lists what it can.", 409),
    "missing_permission": Code(
        "The key lacks a permission, which follows after a colon: add it.", 422
    ),
    "no_listing": Code("This store has no listing yet.", 409),
    "not_a_restricted_key": Code("A restricted key begins with rk_live_.", 422),
    "publishable_key": Code("A publishable key may read nothing: make a restricted one.", 422),
    "reason_required": Code("A rejection needs a reason.", 422),
    "review_required": Code("An administrator must approve it before this.", 403),
    "secret_key_refused": Code("A secret key may do anything: make a restricted one.", 422),
    "source_in_use": Code("Another listing is proven by this shop or account already.", 409),
    "test_mode_key": Code("A key of the test mode proves nothing: make one in live mode.", 422),
}
PLATFORM: Final = {
    "api_version_too_old": Code("Verified revenue needs COMMERCE_API_VERSION 2026-07.", 422),
    "commerce_rejected": Code("The shop's platform refused: the sentence is its own.", 422),
    "commerce_throttled": Code(
        "Too many requests went to the shop for now: try again after retryAfter seconds.", 503
    ),
    "commerce_unreachable": Code("The shop's platform is out of reach: try again.", 502, 503),
    "disconnected": Code("The store was disconnected from its shop: connect it again.", 503),
    "import_not_running": Code("No import of orders runs, so there is none to stop.", 409),
    "never_connected": Code("Connect the store to a shop first.", 503),
    "platform_denied": Code("The platform refused the custom app's credentials.", 400),
    "store_deleted": Code("The store is being deleted.", 409),
    "token_unavailable": Code(
        "The shop no longer accepts our access: connect the store again.", 503
    ),
}
LAUNCHES: Final = {
    "already_connected": Code("The store is connected to a shop: disconnect it first.", 409),
    "already_transferred": Code("The shop is the merchant's own already.", 409),
    "dependant_started": Code(
        "What stands on this milestone has begun (`milestones`): it can no longer be undone.", 409
    ),
    "launch_exists": Code("The store's launch was begun with something else: look at it.", 409),
    "launch_not_begun": Code("Begin the store's launch first.", 404),
    "no_location_group": Code("Give the shop's shipping profile a location to ship from."),
    "not_a_checkpoint": Code("This milestone runs by itself: run it, or skip it.", 409),
    "not_ready": Code("Something comes first: `milestones` names it.", 409),
    "devstore_claimed": Code("This shop of the pool was handed out: its keys stay.", 409),
    "not_provisioned": Code("The store's shop is not of the pool, so nobody transfers it.", 409),
    "not_transferable": Code(
        "Only a client-transfer store of the Partner Dashboard can be handed over.", 422
    ),
    "pool_empty": Code("No shop of the pool is left: connect one of your own, or wait.", 409),
    "not_skippable": Code("This milestone cannot be skipped.", 409),
    "products_made": Code("Products were made of the form: change them in the shop's admin.", 409),
    "transfer_requested": Code("Another address was invited, and has a week to accept.", 409),
}
AGENTS: Final = {
    "written_by_merchant": Code(
        "Somebody of the shop, or its launch (`source`), told this: agents cannot change it.", 409
    ),
    "answer_too_large": Code("The answer is too large: ask for less at once.", 422),
    "contended": Code("It changed each time this was tried: look at it, then try again."),
    "conversation_too_long": Code("The conversation is too long: begin a new one.", 422),
    "declined": Code("The user did not confirm the change.", 409),
    "not_applied": Code("The platform never answered, and nothing changed in the shop."),
    "note_full": Code("The order's note has no room for more."),
    "operation_pending": Code("It is not done yet: ask `get_operation` for how it ended."),
    "plan_expired": Code("The plan is too old: plan it anew with `dry_run`.", 422),
    "plan_invalid": Code("The plan token is not of this change: plan it with `dry_run`.", 422),
    "already_decided": Code("It was decided before: look what became of it.", 409),
    "proposal_expired": Code("Nobody confirmed it in time: have it proposed anew.", 409),
    "proposal_required": Code("A person of the store decides this: have it proposed.", 409),
    "same_thing_twice": Code("Keep one of the changes of the same thing.", 422),
    "stopped_by_person": Code("Have a person of the store resume what one of them stopped.", 409),
    "too_many_proposals": Code("Have some of what waits for a person decided first.", 409),
    "plan_required": Code("Call with `dry_run` first, then with its `plan_token`.", 422),
    "code_taken": Code("Choose a code that the shop does not have."),
    "changed_since": Code("This was done, and somebody changed it right after: look in the shop."),
    "fulfilment_cancelled": Code("The fulfilment was cancelled in the shop."),
    "nothing_to_fulfil": Code("Nothing of the order is left to be sent."),
    "other_currency": Code("Use the currency that the shop, or the order, has."),
    "several_locations": Code("Name one of the fulfilment orders that it lists."),
    "several_parcels": Code("Track these parcels in the shop's admin."),
    "too_large": Code("Do this in the shop's admin."),
    "too_many": Code("Ask for no more than is left."),
    "too_much": Code("Ask for no more than can be given back."),
    "quantity_changed": Code("The stock is not what it was compared with: look again."),
    "published": Code("Buyers see this: a person edits it in the shop's admin."),
    "query_not_allowed": Code("The query is not one that may be asked.", 422),
    "query_too_costly": Code(
        "The query costs more points than one query may: request fewer items or nest fewer lists.",
        422,
    ),
    "request_closed": Code("The request for consent is over: begin again in the app.", 404),
    "title_required": Code("Give a new one a title."),
    "too_many_tags": Code("The order has no room for more tags."),
    "shop_changed": Code("The store was connected to another shop before this was done."),
    "unclear": Code("The shop is neither as it was nor as you asked: look in the shop."),
    "unknown": Code(
        "It is not known whether this happened: look in the shop before you repeat it."
    ),
    "unreadable": Code("This was asked of another version and can no longer be read: ask again."),
}
INTELLIGENCE: Final = {
    "competitor_limit": Code("Choose the plan in `plan`, or name fewer competitors.", 402),
    "invalid_domain": Code("Name a storefront by its domain, such as `shop.example.com`.", 422),
    "not_verified": Code("Verify the listing's revenue by its shop first.", 409),
    "scan_cancelled": Code("The domain was to be left alone before its scan had ended."),
    "scan_failed": Code("The scan failed at our side: ask again in a minute.", 502),
    "too_many_domains": Code("Name fewer domains at once.", 422),
    "suppressed": Code("The owner of the domain asked to be left alone.", 409),
}
CODES: Final = {
    **ACCESS,
    **REQUESTS,
    **SERVICE,
    **MONEY,
    **SELLING,
    **PLATFORM,
    **LAUNCHES,
    **AGENTS,
    **INTELLIGENCE,
}
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
    "Launches": LAUNCHES,
    "Agents": AGENTS,
    "Competitor intelligence": INTELLIGENCE,
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
