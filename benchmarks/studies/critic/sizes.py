"""Settings of the study of learned critics."""

from __future__ import annotations

import msgspec

from swarm_ui.errors import ConfigError

SOURCES = ("phone", "invented", "web")
"""Where training replies come from: the phone's training templates, phones with invented apps, and
training seeds of MiniWoB++ pages (labels by outcome)."""
ARMS: dict[str, tuple[str, ...]] = {
    "all": SOURCES,
    "phones": ("phone", "invented"),
    "phone": ("phone",),
}
"""Critics by name, with what they are trained on."""
PHONE_TESTS = {"parameters": "new parameters", "templates": "new templates", "apps": "new apps"}
TESTS = {**PHONE_TESTS, "web": "MiniWoB++ pages, test seeds"}


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """All settings that affect the results; stored in the folder of the study."""

    model: str
    start: str = ""
    """The adapter that training starts from: its folder, or its name in this package. Empty: a new
    one."""
    agent: str | None = None
    """Folder of the base agent whose replies are judged; ``None``: the one that ships."""
    phone: int = 300
    """Training episodes on the phone's training templates."""
    invented: int = 300
    """Training episodes on phones with invented apps."""
    devices: int = 64
    """Phones with invented apps."""
    web_each: int = 4
    """Training episodes of each of the 49 reference pages."""
    validation: int = 60
    """Episodes on training templates with validation parameters, on which scores are scaled."""
    test: int = 76
    """Test episodes of each split of the phone."""
    web_test_each: int = 2
    """Test episodes of each reference page."""
    pages: int = 49
    """Reference pages, the first by name."""
    minutes: float | None = 16.0
    """Longest training of one critic; ``None``: one pass over the replies."""
    epochs: float = 1.0
    learning_rate: float = 5e-4
    tokens_per_batch: int = 2_400
    guide: float = 0.1
    stray: float = 0.1
    adversaries: int = 2
    quick: bool = False

    def __post_init__(self) -> None:
        few = [name for name in ("phone", "validation", "test") if getattr(self, name) < 1]
        if few:
            raise ConfigError(f"critic study: {', '.join(few)} must be at least 1")


QUICK = Sizes(
    model="", phone=6, invented=4, devices=4, web_each=0, validation=4, test=4, web_test_each=0,
    pages=0, minutes=0.1, tokens_per_batch=1_200, quick=True,
)  # fmt: skip
"""Seconds, with a tiny random model and no browser; the figures mean nothing."""
