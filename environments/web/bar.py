"""The browser's bar: its tabs, buttons and address, as elements above the page."""

from __future__ import annotations

from collections.abc import Sequence

from swarm_ui.action import Action
from swarm_ui.environments.web.tabs import Session
from swarm_ui.errors import ConfigError
from swarm_ui.observation import Element


async def elements(session: Session, title: str) -> list[Element]:
    """The elements of the bar. ``title`` is the title of the page in the active tab."""
    tab = session.front
    visited = await tab.call("Page.getNavigationHistory")
    here, entries = visited["currentIndex"], visited["entries"]
    tab.title = title
    shown = [
        Element(index=0, role="tab", text=one.title or one.url, selected=one is tab)
        for one in session.tabs
    ]
    names = ["New tab", *["Close tab"] * (len(session.tabs) > 1)]
    names += ["Forward"] * (here + 1 < len(entries))
    shown += [Element(index=0, role="button", text=name) for name in names]
    return [*shown, Element(index=0, role="field", text="Address", value=tab.url, editable=True)]


async def act(session: Session, action: Action, labels: Sequence[str]) -> str:
    """Do an action on the bar; return why it failed, or ``""``.

    Args:
        session: the tabs.
        action: the action; its index is a position in the bar.
        labels: the labels of the bar's elements.
    """
    place = len(labels) if action.index is None else action.index
    if action.action_type != "click" or place >= len(labels) - 1:  # the last one is the address
        return "nothing happens: it is a part of the browser, not of the page"
    if place < len(session.tabs):
        await session.switch(place)
        return ""
    try:
        if labels[place] == "New tab":
            await session.new_tab()
        elif labels[place] == "Close tab":
            await session.close_tab()
        else:
            await session.front.travel(1)
    except ConfigError as error:
        return str(error)
    return ""
