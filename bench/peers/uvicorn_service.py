"""Our own service, unchanged, on uvicorn instead of Hypercorn."""

import asyncio
import gc
import os
import sys

import uvicorn
import uvloop

from tolsey import logs, settings
from tolsey.service import running


async def serve(port: int) -> None:
    """Run the service of the environment's settings until SIGTERM."""
    gc.freeze()  # both as `tolsey serve` does
    gc.set_threshold(20_000, 20, 20)
    async with running(settings.read()) as service:
        config = uvicorn.Config(
            service.app,
            host="127.0.0.1",
            port=port,
            log_level="warning",
            access_log=False,
            lifespan="off",
        )
        await uvicorn.Server(config).serve()


if __name__ == "__main__":
    logs.configure(os.environ.get("LOG_LEVEL", "warning"))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(int(sys.argv[1])))
