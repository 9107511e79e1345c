"""The GraphQL documents the service sends, valid for Admin API 2026-07.

They ask for nothing personal but the customer's id and e-mail of one re-read order, which become
a pseudonym before anything is kept. Money is asked in the shop's currency only.
"""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import orjson

LINES_PER_ORDER = 5
TRANSACTIONS_PER_ORDER = 5

BAG = "{ shopMoney { amount } }"
ORDER = f"""
id test processedAt createdAt cancelledAt sourceName checkoutToken currencyCode dutiesIncluded
totalPriceSet {BAG}
currentTotalPriceSet {BAG}
currentTotalTaxSet {BAG}
currentShippingPriceSet {BAG}
currentTotalDutiesSet {BAG}
currentTotalAdditionalFeesSet {BAG}
totalTipReceivedSet {BAG}
disputes {{ status }}
refunds {{ id }}
"""
LINE = f"""
isGiftCard
sellingPlan {{ sellingPlanId name }}
priceAfterAllDiscountsBeforeTaxesSet {BAG}
"""
TRANSACTION = f"kind status test manualPaymentGateway gateway fees {{ id }} amountSet {BAG}"
PAGE = "pageInfo { hasNextPage endCursor }"
REFUND = f"""
id processedAt
transactions(first: $movements) {{ nodes {{ status amountSet {BAG} }} {PAGE} }}
refundLineItems(first: $lines, after: $after) {{
  nodes {{ subtotalSet {BAG} totalTaxSet {BAG} }} {PAGE}
}}
refundShippingLines(first: $movements) {{
  nodes {{ subtotalAmountSet {BAG} taxAmountSet {BAG} }} {PAGE}
}}
duties {{ amountSet {BAG} }}
"""

REFUNDS = f"""
query Refunds($ids: [ID!]!, $lines: Int!, $movements: Int!, $after: String) {{
  nodes(ids: $ids) {{ ... on Refund {{ {REFUND} }} }}
}}
"""

CONNECT_PROBE = """
query ConnectProbe {
  shop {
    name myshopifyDomain currencyCode ianaTimezone createdAt
    plan { publicDisplayName partnerDevelopment }
    primaryDomain { host }
  }
  currentAppInstallation { accessScopes { handle } }
}
"""

COUNT_ORDERS = """
query CountOrders($query: String!, $limit: Int) {
  ordersCount(query: $query, limit: $limit) { count precision }
}
"""

ORDERS = f"""
query Orders($first: Int!, $after: String, $query: String!, $reverse: Boolean) {{
  orders(
    first: $first, after: $after, query: $query, sortKey: PROCESSED_AT, reverse: $reverse
  ) {{
    nodes {{
      {ORDER}
      lineItems(first: {LINES_PER_ORDER}) {{ nodes {{ {LINE} }} {PAGE} }}
      transactions(first: {TRANSACTIONS_PER_ORDER}) {{ {TRANSACTION} }}
    }}
    {PAGE}
  }}
}}
"""

ORDER_LINES = f"""
query OrderLines($id: ID!, $first: Int!, $after: String) {{
  order(id: $id) {{
    lineItems(first: $first, after: $after) {{ nodes {{ {LINE} }} {PAGE} }}
  }}
}}
"""

ORDER_TRANSACTIONS = f"""
query OrderTransactions($id: ID!) {{ order(id: $id) {{ transactions {{ {TRANSACTION} }} }} }}
"""

ONE_ORDER = """
query OneOrder($id: ID!) {
  order(id: $id) {
    id name test createdAt processedAt updatedAt cancelledAt closedAt sourceName
    displayFinancialStatus displayFulfillmentStatus currencyCode
    totalPriceSet { shopMoney { amount } }
    currentTotalPriceSet { shopMoney { amount } }
    customer { id defaultEmailAddress { emailAddress } }
  }
}
"""

EXPORTED_ORDER = f"""
id name test createdAt processedAt updatedAt cancelledAt cancelReason closedAt sourceName email
displayFinancialStatus displayFulfillmentStatus currencyCode tags discountCodes
customAttributes {{ key value }}
totalPriceSet {BAG}
currentTotalPriceSet {BAG}
totalDiscountsSet {BAG}
shippingLine {{ title originalPriceSet {BAG} }}
customerJourneySummary {{ lastVisit {{ landingPage referrerUrl }} }}
transactions {{ kind status amountSet {BAG} }}
refunds {{ id createdAt processedAt totalRefundedSet {BAG} }}
"""
EXPORTED_LINE = f"""
id title sku quantity currentQuantity
originalUnitPriceSet {BAG}
totalDiscountSet {BAG}
"""

RUN_BULK = """
mutation RunBulk($query: String!, $grouped: Boolean!) {
  bulkOperationRunQuery(query: $query, groupObjects: $grouped) {
    bulkOperation { id status }
    userErrors { field message code }
  }
}
"""

BULK_STATUS = """
query BulkStatus($id: ID!) {
  bulkOperation(id: $id) { id status errorCode rootObjectCount fileSize url }
}
"""

SUBSCRIPTIONS = """
query Subscriptions($first: Int!, $after: String) {
  webhookSubscriptions(first: $first, after: $after) {
    nodes { id topic uri format filter includeFields }
    pageInfo { hasNextPage endCursor }
  }
}
"""


def bulk_orders(query: str) -> str:
    """Write the inner query of a bulk export of orders with their lines and transactions.

    What refunds were for is a connection inside a list, which no export may hold: it has their ids.
    """
    # a JSON string is also a GraphQL string
    quoted = orjson.dumps(query).decode()
    return f"""{{
  orders(query: {quoted}) {{
    edges {{
      node {{
        {ORDER}
        transactions {{ {TRANSACTION} }}
        lineItems {{ edges {{ node {{ {LINE} }} }} }}
      }}
    }}
  }}
}}"""


def exported_orders(since: datetime | None, scopes: Collection[str]) -> str:
    """Write the inner query of a bulk export of orders as their deliveries tell them.

    Test orders are among them, as they are delivered. What needs a scope that the app does not have is left
    out: one field that is denied ends the whole export.
    """
    made = "" if since is None else f"created_at:>='{_moment(since)}'"
    found = f"(query: {orjson.dumps(made).decode()})" if made else ""
    buyer = "customer { id defaultEmailAddress { emailAddress } }"
    thing = "variantTitle product { id } variant { id }"
    return f"""{{
  orders{found} {{
    edges {{
      node {{
        {EXPORTED_ORDER}
        {buyer if "read_customers" in scopes else ""}
        lineItems {{
          edges {{ node {{ {EXPORTED_LINE} {thing if "read_products" in scopes else ""} }} }}
        }}
      }}
    }}
  }}
}}"""


def subscribe(count: int) -> str:
    """Write a mutation that makes `count` subscriptions, `s0` for `$t0` and so on."""
    topics = ", ".join(f"$t{n}: WebhookSubscriptionTopic!" for n in range(count))
    fields = "\n".join(
        f"s{n}: webhookSubscriptionCreate(topic: $t{n}, webhookSubscription: $subscription)"
        " { webhookSubscription { id } userErrors { field message } }"
        for n in range(count)
    )
    return (
        f"mutation Subscribe({topics}, $subscription: WebhookSubscriptionInput!) {{\n{fields}\n}}"
    )


def unsubscribe(count: int) -> str:
    """Write a mutation that deletes `count` subscriptions, `s0` for `$id0` and so on."""
    ids = ", ".join(f"$id{n}: ID!" for n in range(count))
    fields = "\n".join(
        f"s{n}: webhookSubscriptionDelete(id: $id{n})"
        " { deletedWebhookSubscriptionId userErrors { field message } }"
        for n in range(count)
    )
    return f"mutation Unsubscribe({ids}) {{\n{fields}\n}}"


def processed_between(start: datetime, end: datetime) -> str:
    """Search for the real orders processed in [start, end), widened to whole seconds."""
    last = end.astimezone(UTC)
    if last.microsecond:
        last = last.replace(microsecond=0) + timedelta(seconds=1)
    return f"processed_at:>='{_moment(start)}' AND processed_at:<'{_moment(last)}' AND test:false"


def processed_before(start: datetime) -> str:
    """Search for the real orders processed before a moment."""
    return f"processed_at:<'{_moment(start)}' AND test:false"


def given_back_since(start: datetime, status: str) -> str:
    """Search for the orders from before a moment that were refunded, perhaps, since then."""
    return f"{processed_before(start)} AND updated_at:>='{_moment(start)}' AND financial_status:{status}"


def gid(kind: str, number: int) -> str:
    """Write a global id from a kind and a number."""
    return f"gid://shopify/{kind}/{number}"


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
