"""A bare application of the same libraries: Quart and asyncpg on Hypercorn, one route that asks the database."""

import os
import sys

import asyncpg
from quart import Quart

from bench.peers.serving import serve

app = Quart(__name__)


@app.before_serving
async def connect() -> None:
    app.config["POOL"] = await asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=2)


@app.get("/api/health")
async def health() -> dict[str, bool]:
    return {"ok": await app.config["POOL"].fetchval("SELECT true")}


if __name__ == "__main__":
    serve(app, "hypercorn", int(sys.argv[1]))
