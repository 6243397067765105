"""One web site and one browser for all tests of a module."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from web_site import Site, site

from swarm_ui.environments.web import WebBrowser


@pytest.fixture(scope="module")
def shop() -> Iterator[Site]:
    with site() as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(shop: Site) -> AsyncIterator[WebBrowser]:
    async with WebBrowser([shop.url]) as running:
        yield running
