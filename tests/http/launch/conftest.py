from collections.abc import AsyncIterator

import pytest

from tests.http.launch.merchant import Merchant
from tests.mcp.tools.conftest import clock, given, platform, two_stores
from tests.mcp.tools.two_stores import SHOPS, TwoStores, connect
from tolsey.sandbox.commerce.platform import Platform
from tolsey.sandbox.commerce.shop.state import ALL_SCOPES, LAUNCH_SCOPES, WRITE_SCOPES

__all__ = ["clock", "given", "platform", "two_stores"]


@pytest.fixture
async def merchant(two_stores: TwoStores, platform: Platform) -> AsyncIterator[Merchant]:
    """Connect Ann's store to an empty shop that grants everything a launch takes so far."""
    shop = platform.shop(SHOPS["ann"])
    shop.scopes = (*ALL_SCOPES, *WRITE_SCOPES, *LAUNCH_SCOPES)
    token = shop.issue_token(platform.now())
    await connect(two_stores.service, two_stores.ann, token.text, shop.scopes)
    # A merchant begins their launch themselves.
    await two_stores.database.execute("DELETE FROM launch_milestones")
    await two_stores.database.execute("DELETE FROM store_launches")
    async with await two_stores.person(two_stores.ann.user_id) as client:
        yield Merchant(two_stores, shop, client)
