"""What OpenAPI says of the receiver, which Quart does not route."""

from typing import Any, Final

OPERATION: Final[dict[str, Any]] = {
    "summary": "Take an event of the payment processor.",
    "description": "The body is verified as the bytes it is, under any secret of"
    " `PAYMENTS_WEBHOOK_SECRET`, and must be signed within 300 seconds of now. A repeat of an event"
    " answers `duplicate`; a type that is not handled, a thin event, and an event of someone else"
    " answer `ignored`. An event that cannot be read answers 422, is kept as failed, and is read"
    " again when it is sent again.",
    "security": [],
    "parameters": [
        {
            "name": "Stripe-Signature",
            "in": "header",
            "required": True,
            "schema": {"type": "string"},
        }
    ],
    "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
    "responses": {
        "200": {
            "description": "The event is on disk, or there is nothing in it to keep.",
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "required": ["status"],
                        "properties": {"status": {"enum": ["accepted", "duplicate", "ignored"]}},
                    }
                }
            },
        },
        "default": {"$ref": "#/components/responses/Problem"},
    },
}
