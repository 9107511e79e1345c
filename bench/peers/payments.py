"""The receiver a user would write instead: FastAPI, the processor's own package, asyncpg."""

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated

import asyncpg
import stripe
import uvicorn
from fastapi import FastAPI, Header, HTTPException, Request
from fastapi.responses import ORJSONResponse

SECRET = os.environ["PEER_SECRET"]
POOL = 10

TABLE = """
CREATE TABLE IF NOT EXISTS events (
    id text PRIMARY KEY,
    type text NOT NULL,
    customer text,
    subscription text,
    organization_id text,
    body jsonb NOT NULL,
    received_at timestamptz NOT NULL DEFAULT now()
)
"""

INSERT = """
INSERT INTO events (id, type, customer, subscription, organization_id, body)
VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING
"""


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    """Keep a pool while the application runs."""
    async with asyncpg.create_pool(
        os.environ["DATABASE_URL"], min_size=POOL, max_size=POOL
    ) as pool:
        await pool.execute(TABLE)
        app.state.pool = pool
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/webhooks")
async def receive(request: Request, stripe_signature: Annotated[str, Header()]) -> ORJSONResponse:
    """Prove an event as its package's documents show, and keep it."""
    body = await request.body()
    try:
        event = stripe.Webhook.construct_event(body, stripe_signature, SECRET)
    except (ValueError, stripe.SignatureVerificationError) as error:
        raise HTTPException(400) from error
    about = event.data.object
    details = about["parent"]["subscription_details"]
    pool: asyncpg.Pool[asyncpg.Record] = request.app.state.pool
    status = await pool.execute(
        INSERT,
        event.id,
        event.type,
        about["customer"],
        details["subscription"],
        details["metadata"]["org_id"],
        body.decode(),
    )
    return ORJSONResponse({"status": "accepted" if status == "INSERT 0 1" else "duplicate"})


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
