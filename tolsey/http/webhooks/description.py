"""What OpenAPI says of the receivers, which Quart does not route."""

from typing import Any, Final

OPERATION: Final[dict[str, Any]] = {
    "summary": "Take a delivery of the commerce platform.",
    "description": "The body is verified as the bytes it is: base64 of its HMAC-SHA256 under the"
    " secret of a store connected to the shop. `X-Commerce-*`, `X-Shopify-*` and `Shopify-*` mean the"
    " same; one family is used. A repeat of a delivery id answers `duplicate`.",
    "security": [],
    "parameters": [
        {
            "name": f"X-Commerce-{name}",
            "in": "header",
            "required": required,
            "schema": {"type": "string"},
        }
        for name, required in (
            ("Topic", True),
            ("Hmac-Sha256", True),
            ("Shop-Domain", True),
            ("Webhook-Id", False),
            ("Event-Id", False),
            ("Triggered-At", False),
            ("API-Version", False),
        )
    ],
    "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
    "responses": {
        "200": {
            "description": "The delivery is on disk, with its effects or as work that follows.",
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "required": ["status"],
                        "properties": {"status": {"enum": ["accepted", "duplicate"]}},
                    }
                }
            },
        },
        "default": {"$ref": "#/components/responses/Problem"},
    },
}
