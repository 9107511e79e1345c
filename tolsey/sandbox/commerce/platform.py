"""The stand-in of the commerce platform: its shops, served over HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

from tolsey.sandbox.commerce.course.shops import Shops
from tolsey.sandbox.commerce.face.admin import Admin
from tolsey.sandbox.commerce.face.app import build_app
from tolsey.sandbox.commerce.face.faulty import Faulty
from tolsey.sandbox.commerce.query.schema import PUBLISHED_FOLDER
from tolsey.sandbox.commerce.webhooks.deliveries import Deliveries
from tolsey.sandbox.server import listening


class Platform(Shops):
    """A commerce platform on loopback, with as many shops as were added.

    `published_folder` is where the published schema lies; None switches that check off.
    """

    def __init__(
        self,
        *,
        now: datetime | None = None,
        frozen_clock: bool = False,
        published_folder: Path | None = PUBLISHED_FOLDER,
        line_prices_exclude_returns: bool = True,
        bulk_polls: int = 1,
        deliveries: Deliveries | None = None,
    ) -> None:
        super().__init__(
            now=now,
            frozen_clock=frozen_clock,
            line_prices_exclude_returns=line_prices_exclude_returns,
            bulk_polls=bulk_polls,
            deliveries=deliveries,
        )
        self.admin = Admin(self, published_folder)

    @property
    def url_template(self) -> str:
        """The value for `COMMERCE_URL_TEMPLATE`."""
        return self.url + "/{shop}"

    @asynccontextmanager
    async def serve(self, port: int = 0) -> AsyncIterator[str]:
        """Serve on loopback and give the base address; a shop is at `{address}/{shop}`."""
        async with listening(Faulty(self, build_app(self, self.admin)), port) as chosen:
            self.url = f"http://127.0.0.1:{chosen}"
            async with self.working():
                self.background(self.admin.warm)
                self.background(self.deliveries.run)
                yield self.url
