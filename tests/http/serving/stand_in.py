"""Serve an application that answers at once, as a process of its own: `stand_in.py SERVER PORT`."""

import sys
from typing import Any

import anyio

from tolsey.http.web.edge import Edge
from tolsey.server import chosen, serve_app


async def answer(scope: Any, receive: Any, send: Any) -> None:
    del scope, receive
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body"})


async def main(server: Any, port: int) -> None:
    edge = Edge(answer, {}, is_https=False)
    await serve_app(edge, "127.0.0.1", port, anyio.Event(), server=chosen(server))


anyio.run(main, sys.argv[1], int(sys.argv[2]))
