"""Episodes on real pages, played by the demo."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from swarm_ui.errors import ConfigError
from swarm_ui.experiment.environments.miniwob import play_pages


async def test_an_error_is_raised_as_it_is() -> None:
    """Scripts report an error of this library in one line; they do not know a group of errors."""

    class Page:
        name = "page"

        async def reset(self, *, task: str, seed: int) -> object:
            raise ConfigError("no such task")

        async def close(self) -> None: ...

    browser: Any = SimpleNamespace(environments=[Page(), Page()])
    policy: Any = SimpleNamespace(name="nobody", begin=None)
    with pytest.raises(ConfigError, match="no such task"):
        await play_pages(browser, policy, [("a", 1), ("b", 1)], cast(Any, None))
