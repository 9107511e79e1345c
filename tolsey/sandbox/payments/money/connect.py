"""Accounts: the key's own, and the ones a platform opens for the people it pays."""

from typing import Any

from tolsey.sandbox.payments.account.books import Obj, merged, whole
from tolsey.sandbox.payments.account.merchant import Merchant
from tolsey.sandbox.payments.account.refused import Refused, not_built
from tolsey.sandbox.payments.account.routes import Call, Route, listed, plays, retrieved

LINK_SECONDS = 300
_EXPRESS = {
    "stripe_dashboard": {"type": "express"},
    "fees": {"payer": "application"},
    "losses": {"payments": "application"},
    "requirement_collection": "stripe",
}
_DUE = ["external_account", "individual.first_name", "individual.id_number"]


def own_account(merchant: Merchant) -> Obj:
    """Give the account that a key belongs to; it is fully open."""
    return _account(merchant.id, merchant.now(), opened=True)


def onboard(merchant: Merchant, account: Obj, *, disabled_reason: str | None = None) -> None:
    """Let an account's holder fill the form in; with a reason the processor is not content."""
    fine = disabled_reason is None
    state = _state(opened=fine, reason=disabled_reason)
    capabilities = dict.fromkeys(account["capabilities"], "active" if fine else "inactive")
    previous = {name: account[name] for name in ("payouts_enabled", "details_submitted")}
    account.update({**state, "details_submitted": True, "capabilities": capabilities})
    merchant.emit("account.updated", account, previous, account=account["id"])


def fail_payout(merchant: Merchant, account: Obj, amount: int, **metadata: str) -> Obj:
    """Let a payout to an account's bank come back."""
    payout = merchant.new(
        "payout",
        "po",
        amount=amount,
        application_fee=None,
        application_fee_amount=None,
        arrival_date=merchant.now(),
        automatic=True,
        balance_transaction=merchant.books.new_id("txn"),
        currency="usd",
        description="STRIPE PAYOUT",
        destination=merchant.books.new_id("ba"),
        failure_balance_transaction=merchant.books.new_id("txn"),
        failure_code="account_closed",
        failure_message="The bank account has been closed.",
        metadata=metadata,
        method="standard",
        original_payout=None,
        reconciliation_status="completed",
        reversed_by=None,
        source_type="card",
        statement_descriptor=None,
        status="failed",
        type="bank_account",
    )
    merchant.emit("payout.failed", payout, account=account["id"])
    return payout


def _state(*, opened: bool, reason: str | None) -> Obj:
    due = [] if opened else list(_DUE)
    requirements: Obj = {
        "alternatives": [],
        "current_deadline": None,
        "currently_due": due,
        "disabled_reason": reason,
        "errors": [],
        "eventually_due": due,
        "past_due": due,
        "pending_verification": [],
    }
    return {
        "charges_enabled": opened,
        "payouts_enabled": opened,
        "requirements": requirements,
        "future_requirements": {**requirements, "disabled_reason": None},
    }


def _account(id: str, created: int, *, opened: bool, **fields: Any) -> Obj:
    return {
        "id": id,
        "object": "account",
        "created": created,
        "business_profile": {"name": "Sandbox", "url": None},
        "business_type": None,
        "capabilities": {"card_payments": "active", "transfers": "active"} if opened else {},
        "controller": {"type": "account"},
        "country": "US",
        "default_currency": "usd",
        "details_submitted": opened,
        "email": None,
        "external_accounts": whole([], f"/v1/accounts/{id}/external_accounts"),
        "metadata": {},
        "settings": {"dashboard": {"display_name": "Sandbox", "timezone": "Etc/UTC"}},
        "tos_acceptance": {"date": None},
        "type": "standard",
        **_state(opened=opened, reason=None if opened else "requirements.past_due"),
        **fields,
    }


def _own(call: Call) -> Obj:
    return own_account(call.merchant)


def _create(call: Call) -> Obj:
    merchant, given = call.merchant, call.params
    if not merchant.platform:
        raise Refused(
            "You can only create new accounts if you've signed up for Connect, which you can do at"
            " https://dashboard.stripe.com/connect."
        )
    controller = given.get("controller")
    if given.get("type") not in (None, "express") or (controller and controller != _EXPRESS):
        raise not_built("accounts other than express ones of the platform", "controller")
    if controller and "type" in given:
        raise Refused("You may not provide the `type` parameter and `controller` parameters.")
    if controller is None and "type" not in given:
        raise not_built("an account without `controller`", "controller")
    wanted = {name for name, ask in given.get("capabilities", {}).items() if ask.get("requested")}
    account = _account(
        merchant.books.new_id("acct", 16),
        merchant.now(),
        opened=False,
        capabilities=dict.fromkeys(sorted(wanted), "inactive"),
        controller={**_EXPRESS, "is_controller": True, "type": "application"},
        country=given.get("country", "US"),
        business_type=given.get("business_type"),
        email=given.get("email"),
        metadata=merged({}, given.get("metadata")),
        type="express",
    )
    return merchant.books.add(account)


def _update(call: Call) -> Obj:
    account = call.merchant.books.get("account", call.id)
    account["metadata"] = merged(account["metadata"], call.params.get("metadata"))
    account["email"] = call.params.get("email", account["email"])
    call.merchant.emit("account.updated", account, account=account["id"])
    return account


def _link(call: Call) -> Obj:
    merchant, given = call.merchant, call.params
    account = merchant.books.get("account", given["account"], "account")
    if given["type"] != "account_onboarding":
        raise not_built(f"account links of type `{given['type']}`", "type")
    token = merchant.books.new_id("link")
    for name in ("refresh_url", "return_url"):
        if name not in given:
            raise Refused(f"Missing required param: {name}.", code="parameter_missing", param=name)
    expires = merchant.now() + LINK_SECONDS
    merchant.asked[token] = {**given, "account": account["id"], "expires_at": expires}
    return {
        "object": "account_link",
        "created": merchant.now(),
        "expires_at": expires,
        "url": f"{merchant.url}/setup/e/{merchant.id}/{token}",
    }


def _login(call: Call) -> Obj:
    account = call.merchant.books.get("account", call.id)
    if not account["details_submitted"]:
        raise Refused(
            "Cannot create a login link for an account that has not completed onboarding.",
        )
    return {
        "object": "login_link",
        "created": call.merchant.now(),
        "url": f"{call.merchant.url}/express/{account['id']}",
    }


def _transfer(call: Call) -> Obj:
    merchant, given = call.merchant, call.params
    account = merchant.books.get("account", given.get("destination", ""), "destination")
    if account["capabilities"].get("transfers") != "active":
        raise Refused(
            "Your destination account needs to have at least one of the following capabilities"
            " enabled: transfers, crypto_transfers, legacy_payments",
            code="insufficient_capabilities_for_transfer",
        )
    transfer = merchant.new(
        "transfer",
        "tr",
        amount=given["amount"],
        amount_reversed=0,
        balance_transaction=merchant.books.new_id("txn"),
        currency=given["currency"],
        description=given.get("description"),
        destination=account["id"],
        destination_payment=merchant.books.new_id("py"),
        metadata=merged({}, given.get("metadata")),
        reversed=False,
        source_transaction=None,
        source_type="card",
        transfer_group=given.get("transfer_group"),
    )
    transfer["reversals"] = whole([], f"/v1/transfers/{transfer['id']}/reversals")
    merchant.emit("transfer.created", transfer)
    return transfer


ROUTES = (
    Route("GET", "/v1/account", "AccountRetrieveCurrentParams", "accounts_kyc_basic", _own),
    Route(
        "POST",
        "/v1/accounts",
        "AccountCreateParams",
        "accounts",
        _create,
        plays("business_type capabilities controller country email metadata type"),
    ),
    Route(
        "GET",
        "/v1/accounts/{id}",
        "AccountRetrieveParams",
        "accounts_kyc_basic",
        retrieved("account"),
    ),
    Route(
        "POST",
        "/v1/accounts/{id}",
        "AccountUpdateParams",
        "accounts",
        _update,
        plays("email metadata"),
    ),
    Route(
        "GET", "/v1/accounts", "AccountListParams", "accounts", listed("account", "/v1/accounts")
    ),
    Route(
        "POST",
        "/v1/account_links",
        "AccountLinkCreateParams",
        "account_link",
        _link,
        plays("account collection_options refresh_url return_url type"),
    ),
    Route(
        "POST",
        "/v1/accounts/{id}/login_links",
        "AccountLoginLinkCreateParams",
        "accounts",
        _login,
    ),
    Route(
        "POST",
        "/v1/transfers",
        "TransferCreateParams",
        "transfer",
        _transfer,
        plays("amount currency description destination metadata transfer_group"),
    ),
    Route("GET", "/v1/transfers/{id}", "TransferRetrieveParams", "transfer", retrieved("transfer")),
    Route(
        "GET",
        "/v1/transfers",
        "TransferListParams",
        "transfer",
        listed("transfer", "/v1/transfers", "destination", "transfer_group"),
        plays("destination transfer_group"),
    ),
)
