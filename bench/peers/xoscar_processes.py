"""Asks xoscar's counter in another process, which is a number that is raised and told in memory.

The asker runs in a pool's main process and the counter in a process of the pool's own: of what was
tried (a pool of another program by its address, a counter for each asker) this is the fastest.
"""

from typing import Any

import xoscar

from bench import asking, measure


class XoscarCounter(xoscar.Actor):
    """A number."""

    def __init__(self) -> None:
        asking.collect_seldom()
        self.total = 0

    def read(self) -> int:
        """Raise the number and tell it."""
        self.total += 1
        return self.total


async def main() -> None:
    address = f"127.0.0.1:{measure.free_port()}"
    async with await xoscar.create_actor_pool(address=address, n_process=1):
        elsewhere = xoscar.allocate_strategy.ProcessIndex(1)
        await xoscar.create_actor(
            XoscarCounter, address=address, uid="counter", allocate_strategy=elsewhere
        )
        found = await xoscar.actor_ref(address, "counter")

        async def do(_: str, given: dict[str, Any]) -> asking.Result:
            return await asking.asked(lambda _: found.read(), given["askers"], given["seconds"])

        await asking.obey(do)


if __name__ == "__main__":
    asking.serve(main)
