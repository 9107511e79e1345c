"""List every error code of the service with its statuses and its meaning.

Programs rely on codes, so none is removed or renamed without notice (rules/requests#errors). An error's
`detail` describes the case at hand. The sentence here describes the code and what to do about it.
`docs/codes.md` shows this list, and `/openapi.json` names its codes.
"""

import sys
from typing import Final


class Code:
    """The meaning of a code. `statuses` is empty for a code that only an operation's outcome has."""

    def __init__(self, meaning: str, *statuses: int) -> None:
        self.meaning = meaning
        self.statuses = statuses


ACCESS: Final = {
    "account_deleted": Code("The account was deleted. Sign up again to use the service.", 403),
    "bad_form": Code(
        "The form has expired or is invalid. Open the page again and resubmit it.", 403
    ),
    "banned": Code("The account was suspended by an operator. Contact support.", 403),
    "bot_refused": Code(
        "Bots can't use the pages for signed-in users. Use an API key or connect an agent.", 403
    ),
    "email_taken": Code("An account with this email address already exists. Sign in instead.", 409),
    "forbidden": Code(
        "Your role or your organization doesn't allow this. Ask an owner or admin to do it.", 403
    ),
    "foreign_origin": Code(
        "The request was sent with your cookie from another site. Send the service's address"
        " as `Origin`.",
        403,
    ),
    "invalid_token": Code(
        "The link or token was already used or has expired. Request a new one.", 400
    ),
    "invalid_credentials": Code(
        "The email address or the password is incorrect. Check both and try again.", 401
    ),
    "invitation_over": Code(
        "The invitation is no longer valid; `state` gives the reason. Ask for a new one.", 410
    ),
    "not_in_deletion": Code("The account isn't scheduled for deletion. Sign in as usual.", 409),
    "open_deals": Code("You have an open deal. End it first.", 409),
    "owns_shared_organization": Code(
        "You are the only owner of an organization with other members. Make one of them an"
        " owner first.",
        409,
    ),
    "last_owner": Code(
        "An organization must have at least one owner. Make another member an owner first.", 409
    ),
    "missing_scope": Code(
        "The agent or API key lacks the scope that the error names. Grant that scope.", 403
    ),
    "too_many_keys": Code("You have the maximum number of active API keys. Revoke one first.", 409),
    "too_many_invitations": Code(
        "Too many invitations are pending. Withdraw some of them first.", 409
    ),
    "unauthorized": Code("The request isn't authenticated. Sign in, or send a valid token.", 401),
    "wrong_address": Code(
        "The invitation was sent to another email address. Sign in with that address.", 403
    ),
}
REQUESTS: Final = {
    "ambiguous_length": Code(
        "The request has both `Content-Length` and `Transfer-Encoding`. Send only one of them.", 400
    ),
    "ambiguous_host": Code("The request has more than one `Host` header. Send only one.", 400),
    "misdirected_request": Code(
        "The service doesn't answer for the requested host. Use the service's own address.", 421
    ),
    "bad_request": Code("The request is malformed. Correct it as `detail` describes.", 400),
    "confirmation_required": Code(
        "The operation can't be undone. Ask the user to confirm it, then send it again with"
        " `confirmed`.",
        409,
    ),
    "steps_open": Code("The request still has pending steps. Complete them first.", 409),
    "conflict": Code(
        "The resource's current state doesn't allow this. Fetch it again and check its state.", 409
    ),
    "duplicate": Code(
        "The request was already processed. Check the result before you send it again.", 409
    ),
    "http_version_not_supported": Code(
        "The HTTP version isn't supported. Use HTTP/1.1 or HTTP/2.", 505
    ),
    "idempotency_key_reused": Code(
        "The idempotency key was used for a different request. Use a new key.", 422
    ),
    "invalid_cursor": Code(
        "The cursor isn't valid for this list. Start again from the first page.", 400
    ),
    "invalid_idempotency_key": Code(
        "The `Idempotency-Key` header is invalid. Send 1 to 255 printable ASCII characters.", 400
    ),
    "invalid_payload": Code(
        "The payload doesn't match the message type. Correct the fields that `detail` names.", 422
    ),
    "message_not_in_journal": Code(
        "The actor's journal has no such message. It retains one week of messages that changed"
        " state.",
        404,
    ),
    "message_unknown": Code(
        "This release can't read the message. Replay it unchanged after you deploy a release"
        " that can.",
        409,
    ),
    "invalid_request": Code(
        "The request has invalid fields. Correct the fields named in `errors`.", 422
    ),
    "malformed_json": Code("The request body is not valid JSON. Correct its syntax.", 400),
    "method_not_allowed": Code(
        "The endpoint doesn't support this method. Use one of those in the `Allow` header.", 405
    ),
    "not_found": Code(
        "The resource doesn't exist, or you don't have access to it. Check the id.", 404
    ),
    "nul_in_form": Code("A field contains a NUL character. Remove it.", 422),
    "payload_too_large": Code("The request body is too large. Send a smaller one.", 413),
    "request_header_fields_too_large": Code(
        "The request's headers are too large. Send fewer or shorter headers.", 431
    ),
    "request_in_progress": Code(
        "The first request with this key is still in progress. Try again in a moment.", 409
    ),
    "too_many_fields": Code("The form has more than 1,000 fields. Send fewer fields.", 400),
    "too_many_reports": Code(
        "Your organization is running too many reports at the same time. Try again in a second.",
        429,
    ),
    "too_many_requests": Code(
        "The rate limit is reached. Wait for the time in `Retry-After`.", 429
    ),
    "unprocessable": Code(
        "The request is well formed but can't be carried out. Correct it as `detail` describes.",
        422,
    ),
    "unsupported_media_type": Code(
        "The content type isn't supported. Send JSON as `application/json`.", 415
    ),
    "memory_full": Code(
        "The store's memory is full; `limit` gives the maximum. Delete entries first.", 409
    ),
    "version_changed": Code(
        "The resource changed after you fetched it. Fetch it again and retry.", 409
    ),
}
SERVICE: Final = {
    "actor_busy": Code(
        "Messages or commits are pending for this actor. Try again in a moment.", 409
    ),
    "deadline_exceeded": Code(
        "The request timed out. The operation may still complete; check its status before you"
        " retry.",
        503,
        504,
    ),
    "internal_error": Code(
        "An error occurred on our side. Try again, and quote the request id if you contact support.",
        500,
    ),
    "missing_credential": Code(
        "The feature isn't configured on this server. Ask the operator to set the variable in"
        " `variable`.",
        503,
    ),
    "overloaded": Code(
        "The service is overloaded. Try again after the time in `Retry-After`.", 503
    ),
    "process_dead": Code("The target process isn't responding. Choose another process.", 409),
    "process_draining": Code("The target process is shutting down. Choose another process.", 409),
    "process_unready": Code(
        "The target process isn't ready yet. Wait, or choose another process.", 409
    ),
    "shard_unavailable": Code(
        "The process that handles this is being replaced. Try again in a moment.", 503
    ),
    "storage_overdue": Code("The database query took too long. Request less data.", 503),
    "unavailable": Code("A required service is unreachable or busy. Try again in a moment.", 503),
    "storage_unavailable": Code("The database is unreachable. Try again in a moment.", 503),
    "files_unavailable": Code("The file storage is unreachable. Try again in a minute.", 503),
    "unknown_job": Code("There is no job with this name. Check the list of jobs.", 404),
    "unknown_process": Code(
        "There is no such process. Choose one from the list of processes.", 422
    ),
    "vector_purge_failed": Code(
        "The store's memory couldn't be deleted, so the store wasn't deleted either. Try again"
        " in a minute.",
        503,
    ),
}
MONEY: Final = {
    "already_redeemed": Code(
        "You or your organization already redeemed a code. Each can redeem only one.", 409
    ),
    "already_refunded": Code("The payment was already refunded. No further action is needed.", 409),
    "amount_out_of_range": Code(
        "The amount is out of range. Choose an amount between 5 and 5,000 USD.", 422
    ),
    "change_in_progress": Code(
        "Another plan change is in progress. Try again when it has completed.", 409
    ),
    "card_refused": Code(
        "The card was declined; `processorCode` gives the reason. Use another card.", 402
    ),
    "hold_closed": Code("The hold doesn't exist or has ended. Create a new hold.", 409),
    "insufficient_credits": Code(
        "Your credit balance is too low. Buy credits, or request less.", 402
    ),
    "invalid_amount": Code(
        "The amount must be greater than zero, and a hold can only grow. Send a higher amount.", 422
    ),
    "invalid_lease": Code("The lease must end after it starts. Send a later end time.", 422),
    "no_customer": Code("You have no billing account yet. Choose a plan first.", 409),
    "no_subscription": Code(
        "The organization has no subscription. Subscribe to a plan first.", 409
    ),
    "nothing_to_refund": Code(
        "The payment has no refundable amount left. Check its earlier refunds.", 409
    ),
    "onboarding_unfinished": Code(
        "Your payout account isn't set up yet. Complete its onboarding at Stripe first.", 409
    ),
    "own_code": Code(
        "You can't redeem your own affiliate code. Use a code from another affiliate.", 403
    ),
    "own_organization": Code(
        "The code's affiliate belongs to your organization. Use a code from another affiliate.", 403
    ),
    "payment_disputed": Code(
        "The payment is disputed, so the cardholder's bank decides about it. Wait for the outcome.",
        409,
    ),
    "payment_due": Code("An invoice is unpaid. Pay it at `invoiceUrl` first.", 409),
    "payment_required": Code("Your plan doesn't include this. Upgrade to the plan in `plan`.", 402),
    "tax_form_required": Code(
        "The payee's tax form is missing. File it and send its reference as `taxForm`.", 409
    ),
    "payout_account_required": Code(
        "This requires a verified payout account. Connect one first.", 403
    ),
    "plan_by_contract": Code(
        "The plan is available by contract only. Contact us to set it up or change it.", 409, 422
    ),
    "plan_not_sold": Code(
        "The Free plan can't be purchased. Cancel your subscription to return to it.", 422
    ),
    "plan_unchanged": Code("You are already on this plan. Choose another plan.", 409),
    "processor_busy": Code("Stripe is limiting requests. Wait for the time in `Retry-After`.", 429),
    "processor_rejected": Code(
        "Stripe rejected the request; `processorCode` gives the reason. Correct it and try again.",
        422,
    ),
    "processor_unreachable": Code("Stripe is unreachable. Try again in a minute.", 502),
    "refund_credits_used": Code(
        "Some of the payment's credits were already used, so it can't be refunded.", 409
    ),
    "refund_messages_sent": Code(
        "The plan was used after this payment, so it can't be refunded.", 409
    ),
    "refund_not_newest": Code(
        "Only the most recent payment can be refunded. Request a refund for that one.", 409
    ),
    "refund_too_late": Code(
        "The refund period has ended. Cancel the subscription to stop renewal.", 409
    ),
    "store_limit": Code("Your plan's store limit is reached. Upgrade to the plan in `plan`.", 402),
    "subscription_exists": Code(
        "The organization already has a subscription. Change its plan instead.", 409
    ),
    "subscription_not_active": Code(
        "The subscription can't be changed in its current status. Check its `status`.", 409
    ),
    "too_many_codes": Code("You have the maximum number of affiliate codes. Use one of them.", 409),
    "unknown_cadence": Code("The billing period doesn't exist. Choose monthly or yearly.", 422),
    "unknown_plan": Code("The plan doesn't exist. Choose one from the pricing page.", 422),
    "workflow_limit": Code(
        "Your plan's workflow limit is reached. Wait for a workflow to finish, or upgrade your"
        " plan.",
        402,
    ),
    "yearly_not_open": Code(
        "Yearly billing isn't available to you yet. Choose monthly billing until the date in"
        " `yearlyFrom`.",
        403,
    ),
}
SELLING: Final = {
    "deal_open": Code(
        "You already have an open deal on this listing. Continue with that deal.", 409
    ),
    "guard_failed": Code("A precondition isn't met. Choose one of the actions in `allowed`.", 409),
    "file_of_deal": Code(
        "The file belongs to a deal's data room, so it can't be deleted. Read it in the deal.", 409
    ),
    "file_refused": Code(
        "The file's type isn't supported, or its content doesn't match its type. Upload"
        " another copy.",
        422,
    ),
    "revenue_moved": Code(
        "Verified revenue has changed by more than 10% since the letter of intent. Compare"
        " both figures, then sign with `revenueAcknowledged: true`.",
        409,
    ),
    "document_changed": Code(
        "The document changed after you opened it. Read the current version before you sign.", 409
    ),
    "signature_open": Code(
        "A document in this deal is already out for signature. Sign or withdraw it first.", 409
    ),
    "not_for_sale": Code("The business isn't for sale at the moment. Choose another listing.", 409),
    "own_listing": Code("The listing is your own, so you can't open a deal on it.", 409),
    "account_not_live": Code(
        "The Stripe account can't accept payments yet. Activate it in the Stripe Dashboard.", 422
    ),
    "development_store": Code(
        "Revenue of a development or trial store can't be verified. Connect a store on a paid plan.",
        422,
    ),
    "incomplete_listing": Code(
        "Required fields of the listing are missing. Fill in the fields named in `errors`.", 422
    ),
    "invalid_transition": Code(
        "The current state doesn't allow this action. Choose one of the actions in `allowed`.", 409
    ),
    "missing_permission": Code(
        "The Stripe key lacks the permission after the colon. Add it to the key.", 422
    ),
    "no_listing": Code("The store has no listing. Create one first.", 409),
    "not_a_restricted_key": Code(
        "The key isn't a restricted Stripe key. Create one, which starts with `rk_live_`.", 422
    ),
    "publishable_key": Code("A publishable key can't read revenue. Create a restricted key.", 422),
    "reason_required": Code("A rejection requires a reason. Send `reason`.", 422),
    "review_required": Code("The listing hasn't been approved. Submit it for review first.", 403),
    "secret_key_refused": Code(
        "A secret key has full access, so it isn't accepted. Create a restricted key.", 422
    ),
    "source_in_use": Code(
        "The shop or account is already a revenue source of another listing. Remove it there first.",
        409,
    ),
    "test_mode_key": Code(
        "A test mode key can't verify revenue. Create a restricted key in live mode.", 422
    ),
}
PLATFORM: Final = {
    "api_version_too_old": Code(
        "Verified revenue requires a newer Shopify API version. Set `COMMERCE_API_VERSION` to"
        " 2026-07.",
        422,
    ),
    "commerce_rejected": Code(
        "Shopify rejected the request; `detail` is its message. Correct the request and try again.",
        422,
    ),
    "commerce_throttled": Code(
        "Shopify is limiting requests to this shop. Wait for the seconds in `retryAfter`.", 503
    ),
    "commerce_unreachable": Code("Shopify is unreachable. Try again in a minute.", 502, 503),
    "disconnected": Code("The store was disconnected from its shop. Connect it again.", 503),
    "import_not_running": Code("No order import is running. Check the import's status.", 409),
    "never_connected": Code("The store isn't connected to a shop. Connect it first.", 503),
    "platform_denied": Code(
        "Shopify rejected the custom app's credentials. Check the client ID and the secret.", 400
    ),
    "store_deleted": Code("The store was deleted or is being deleted. Create a new store.", 409),
    "token_unavailable": Code(
        "The shop no longer accepts the app's access. Connect the store again.", 503
    ),
}
LAUNCHES: Final = {
    "already_connected": Code(
        "The store is already connected to a shop. Disconnect it first.", 409
    ),
    "already_transferred": Code(
        "The shop was already transferred to the merchant. No further action is needed.", 409
    ),
    "dependant_started": Code(
        "Dependent milestones have started; `milestones` lists them. The milestone can no"
        " longer be undone.",
        409,
    ),
    "launch_exists": Code(
        "The store's launch was already started with other settings. Fetch it to see them.", 409
    ),
    "launch_not_begun": Code("The store's launch hasn't been started. Start it first.", 404),
    "no_location_group": Code(
        "The shop's shipping profile has no location. Add one in the Shopify admin."
    ),
    "not_a_checkpoint": Code(
        "The milestone runs automatically and can't be marked as done. Run it or skip it.", 409
    ),
    "not_ready": Code(
        "The milestone depends on others; `milestones` lists them. Complete those first.", 409
    ),
    "devstore_claimed": Code(
        "The shop is already assigned to a store, so its keys can't be changed. Add another shop.",
        409,
    ),
    "not_provisioned": Code(
        "The store's shop wasn't provided by us. Transfer it in the Shopify admin.", 409
    ),
    "not_transferable": Code(
        "The shop can't be transferred. Use a client transfer store from the Partner Dashboard.",
        422,
    ),
    "pool_empty": Code(
        "No shop is available at the moment. Connect your own shop, or try again tomorrow.", 409
    ),
    "not_skippable": Code("The milestone can't be skipped. Run it or mark it as done.", 409),
    "products_made": Code(
        "Products were already created from earlier answers. Change them in the Shopify admin.", 409
    ),
    "transfer_requested": Code(
        "Another address was already invited. Wait until that invitation expires after a week.", 409
    ),
}
AGENTS: Final = {
    "written_by_merchant": Code(
        "The entry was written by the merchant or the launch (`source`), so agents can't"
        " change it. Ask a store admin.",
        409,
    ),
    "answer_too_large": Code("The result is too large. Request fewer items or fields.", 422),
    "contended": Code("The item changed during every attempt. Fetch it again and retry."),
    "conversation_too_long": Code("The conversation is too long. Start a new one.", 422),
    "declined": Code("The user declined the change. Retry only if the user asks for it.", 409),
    "not_applied": Code("Shopify never responded, and nothing changed in the shop. Try again."),
    "note_full": Code("The order's note is full. Send a shorter text."),
    "operation_pending": Code("The operation is still running. Check it with `get_operation`."),
    "plan_expired": Code(
        "The plan token has expired. Call again with `dry_run` to get a new one.", 422
    ),
    "plan_invalid": Code(
        "The plan token doesn't belong to this change. Call with `dry_run` to get the right one.",
        422,
    ),
    "already_decided": Code("The proposal was already decided. Check its outcome.", 409),
    "proposal_expired": Code(
        "The proposal expired before anyone approved it. Submit it again.", 409
    ),
    "proposal_required": Code(
        "The change needs approval from a member of the organization. Submit it as a proposal.", 409
    ),
    "same_thing_twice": Code(
        "The request changes the same item twice. Send one change per item.", 422
    ),
    "stopped_by_person": Code(
        "A member of the organization stopped the bulk change. Ask a member to resume it.", 409
    ),
    "too_many_proposals": Code(
        "Too many proposals are waiting for approval. Ask a member to decide some first.", 409
    ),
    "plan_required": Code(
        "The change requires a plan token. Call with `dry_run` first, then with its `plan_token`.",
        422,
    ),
    "code_taken": Code("The shop already has a discount with this code. Choose another code."),
    "changed_since": Code(
        "The change was applied, but another user edited the item afterwards. Check the item"
        " in the shop."
    ),
    "fulfilment_cancelled": Code(
        "The fulfillment was cancelled in the shop. Create a new fulfillment."
    ),
    "nothing_to_fulfil": Code("The order has no items left to fulfill. Check its fulfillments."),
    "other_currency": Code(
        "The amount has a different currency than the shop or the order. Use that currency."
    ),
    "several_locations": Code(
        "The order ships from several locations. Name one of the fulfillment orders in the message."
    ),
    "several_parcels": Code(
        "The fulfillment has several parcels. Edit its tracking in the Shopify admin."
    ),
    "too_large": Code("The item is too large for this tool. Make the change in the Shopify admin."),
    "too_many": Code("The quantity exceeds what is left. Send a smaller quantity."),
    "too_much": Code("The amount exceeds what can be refunded. Send a smaller amount."),
    "quantity_changed": Code(
        "The stock differs from the quantity you compared it with. Fetch it again and retry."
    ),
    "published": Code(
        "The item is published, and agents can't change published content. Ask a store admin"
        " to edit it in Shopify."
    ),
    "query_not_allowed": Code(
        "The query uses something that isn't allowed. Change it as `detail` describes.", 422
    ),
    "query_too_costly": Code(
        "The query costs more points than Shopify allows. Request fewer items or nest fewer lists.",
        422,
    ),
    "request_closed": Code(
        "The authorization request has expired or was already answered. Start again in the app.",
        404,
    ),
    "title_required": Code("A new item requires a title. Send one."),
    "too_many_tags": Code("The order has the maximum number of tags. Remove a tag first."),
    "shop_changed": Code(
        "The store was connected to another shop before the change was applied. Make a new plan."
    ),
    "unclear": Code(
        "The item matches neither the old nor the requested state. Check it in the shop."
    ),
    "unknown": Code("The outcome is unknown. Check the shop before you repeat the change."),
    "unreadable": Code(
        "The stored request was written by another version and can't be read. Send the request"
        " again."
    ),
}
INTELLIGENCE: Final = {
    "competitor_limit": Code(
        "Your plan's competitor limit is reached. Upgrade to the plan in `plan`, or name fewer"
        " competitors.",
        402,
    ),
    "invalid_domain": Code(
        "The value isn't a valid domain. Send a storefront's domain, for example"
        " `shop.example.com`.",
        422,
    ),
    "not_verified": Code("The listing's revenue isn't verified by its shop. Verify it first.", 409),
    "scan_cancelled": Code(
        "The domain's owner opted out before the scan completed. Choose another domain."
    ),
    "scan_failed": Code(
        "The scan failed because of an error on our side. Try again in a minute.", 502
    ),
    "too_many_domains": Code("The request names too many domains. Send fewer.", 422),
    "suppressed": Code("The domain's owner opted out of scans. Choose another domain.", 409),
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
    "Programs read `code`, and users read `detail`. A code keeps its meaning. New codes may be added, so handle an\n"
    'unknown code by its status. A code marked "outcome" is the result of an agent\'s operation, not of a request.\n'
    "This page is generated from `tolsey/actors/codes.py`: `python -m tolsey.actors.codes > docs/codes.md`."
)
GROUPS: Final = {
    "Access": ACCESS,
    "Requests": REQUESTS,
    "The service": SERVICE,
    "Money": MONEY,
    "Selling": SELLING,
    "Shopify": PLATFORM,
    "Launches": LAUNCHES,
    "Agents": AGENTS,
    "Competitor intelligence": INTELLIGENCE,
}


def as_page() -> str:
    """Return the list as a page of the documentation, with one table for each group."""
    parts = ["# Error codes", INTRODUCTION]
    for title, codes in GROUPS.items():
        rows = (
            f"| `{name}` | {', '.join(map(str, one.statuses)) or 'outcome'} | {one.meaning} |"
            for name, one in sorted(codes.items())
        )
        parts.append(
            "\n".join([f"## {title}", "", "| code | status | meaning |", "|---|---|---|", *rows])
        )
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.stdout.write(as_page())
