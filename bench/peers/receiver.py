"""The receiver a user would write instead: FastAPI and asyncpg, a transaction for each delivery."""

import base64
import hashlib
import hmac
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from decimal import Decimal
from typing import Annotated

import asyncpg
import orjson
from fastapi import FastAPI, Header, HTTPException, Request
from fastapi.responses import ORJSONResponse

SECRET = os.environ["PEER_SECRET"].encode()
POOL = 10

TABLES = """
CREATE TABLE IF NOT EXISTS deliveries (
    shop text NOT NULL,
    id text NOT NULL,
    topic text NOT NULL,
    received_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (shop, id)
);
CREATE TABLE IF NOT EXISTS orders (
    shop text NOT NULL,
    id bigint NOT NULL,
    updated_at timestamptz NOT NULL,
    name text,
    currency text,
    total bigint,
    financial_status text,
    customer_id bigint,
    processed_at timestamptz,
    PRIMARY KEY (shop, id)
);
"""

INSERT_DELIVERY = """
INSERT INTO deliveries (shop, id, topic) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING
"""

UPSERT_ORDER = """
INSERT INTO orders (
    shop, id, updated_at, name, currency, total, financial_status, customer_id, processed_at
) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (shop, id) DO UPDATE SET
    updated_at = excluded.updated_at, name = excluded.name, currency = excluded.currency,
    total = excluded.total, financial_status = excluded.financial_status,
    customer_id = excluded.customer_id, processed_at = excluded.processed_at
WHERE orders.updated_at < excluded.updated_at
"""


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    """Keep a pool while the application runs."""
    async with asyncpg.create_pool(
        os.environ["DATABASE_URL"], min_size=POOL, max_size=POOL
    ) as pool:
        await pool.execute(TABLES)
        app.state.pool = pool
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/webhooks")
async def receive(
    request: Request,
    x_shopify_hmac_sha256: Annotated[str, Header()],
    x_shopify_shop_domain: Annotated[str, Header()],
    x_shopify_topic: Annotated[str, Header()],
    x_shopify_webhook_id: Annotated[str, Header()],
) -> ORJSONResponse:
    """Prove, keep and apply a delivery."""
    body = await request.body()
    signature = base64.b64encode(hmac.digest(SECRET, body, hashlib.sha256)).decode()
    if not hmac.compare_digest(signature, x_shopify_hmac_sha256):
        raise HTTPException(401)
    order = orjson.loads(body)
    pool: asyncpg.Pool[asyncpg.Record] = request.app.state.pool
    async with pool.acquire() as connection, connection.transaction():
        status = await connection.execute(
            INSERT_DELIVERY, x_shopify_shop_domain, x_shopify_webhook_id, x_shopify_topic
        )
        if status != "INSERT 0 1":
            return ORJSONResponse({"status": "duplicate"})
        await connection.execute(
            UPSERT_ORDER,
            x_shopify_shop_domain,
            order["id"],
            datetime.fromisoformat(order["updated_at"]),
            order["name"],
            order["currency"],
            int(Decimal(order["total_price"]) * 100),
            order["financial_status"],
            order["customer"]["id"],
            datetime.fromisoformat(order["processed_at"]),
        )
    return ORJSONResponse({"status": "accepted"})


def main() -> None:
    server, port = sys.argv[1], int(sys.argv[2])
    if server == "uvicorn":
        import uvicorn  # noqa: PLC0415 - one of the two runs

        uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)
        return
    import uvloop  # noqa: PLC0415 - as above
    from hypercorn.asyncio import serve  # noqa: PLC0415 - as above
    from hypercorn.config import Config  # noqa: PLC0415 - as above

    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.accesslog = None
    config.keep_alive_max_requests = 1_000_000
    uvloop.run(serve(app, config))


if __name__ == "__main__":
    main()
