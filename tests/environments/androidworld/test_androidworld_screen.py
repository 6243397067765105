"""Screens of Android look to an agent as those of the simulated phone."""

from __future__ import annotations

from typing import Any

from android_forest import Node, forest, window

from swarm_ui.environments.androidworld.screen import read_screen
from swarm_ui.observation import Element, render

SIZE = (1000, 2000)
STATUS_BAR = window(Node("TextView", (0, 0, 1000, 80), text="15:34"), kind=3, active=False)
KEYBOARD = window(Node("TextView", (0, 1500, 1000, 2000), text="q", clickable=True), kind=2)


def row(top: int, *children: Node, **fields: Any) -> Node:
    return Node("LinearLayout", (0, top, 1000, top + 100), *children, clickable=True, **fields)


def text(top: int, words: str, **fields: Any) -> Node:
    return Node("TextView", (0, top, 500, top + 50), text=words, **fields)


def read(*nodes: Node, title: str = "Contacts", package: str = "com.example.contacts") -> Any:
    root = Node("FrameLayout", (0, 0, *SIZE), *nodes, package_name=package)
    return read_screen(forest(window(root, title=title), STATUS_BAR, KEYBOARD), SIZE)


def shown(*nodes: Node, **options: Any) -> list[str]:
    elements = read(*nodes, **options).elements
    return [render_line(element) for element in elements]


def render_line(element: Element) -> str:
    from swarm_ui.observation import Observation

    return render(Observation(goal="", elements=(element,))).partition(": ")[2]


def test_a_row_is_one_element_with_its_texts_and_state() -> None:
    switch = Node("Switch", (900, 300, 1000, 400), checkable=True, checked=True)
    assert shown(
        row(300, text(300, "Wi-Fi"), switch),
        row(400, text(400, "Ringtone"), text(450, "bell")),
        row(500, Node("CheckBox", (0, 500, 90, 600), checkable=True), text(500, "Milk")),
        Node("ImageButton", (0, 600, 90, 700), content_description="New", clickable=True),
    ) == ['switch "Wi-Fi" on', 'item "Ringtone" value="bell"', 'checkbox "Milk" off',
          'button "New"']  # fmt: skip


def test_what_can_only_be_read_is_a_label() -> None:
    email = Node("LinearLayout", (0, 400, 1000, 500), text(400, "Email"), text(450, "a@b"))
    screen = read(text(300, "Nothing here"), email)
    assert [(e.role, e.label, e.value, e.clickable) for e in screen.elements] == [
        ("label", "Nothing here", None, False),
        ("label", "Email", "a@b", False),
    ]


def test_app_and_title_are_no_elements_and_neither_are_status_bar_and_keyboard() -> None:
    screen = read(text(100, "New contact"), row(300, text(300, "Save")))
    assert (screen.app, [e.label for e in screen.elements]) == ("contacts New contact", ["Save"])
    assert read(text(100, "Contacts")).app == "contacts"
    assert read(title="").app == "contacts"


def test_fields_have_a_name_and_contents() -> None:
    label = text(300, "Phone")
    assert shown(
        Node("EditText", (0, 300, 500, 390), text="Name", hint_text="Name", editable=True),
        Node("EditText", (0, 400, 500, 490), text="Ada", hint_text="Name", editable=True),
        Node("EditText", (0, 500, 500, 590), text="", editable=True,
             view_id_resource_name="com.example:id/last_name"),
        Node("EditText", (0, 600, 500, 690), editable=True,
             labeled_by_id=label.message.unique_id),
        label,
    )[:4] == ['field "Name" value=""', 'field "Name" value="Ada"', 'field "last name" value=""',
              'field "Phone" value=""']  # fmt: skip


def test_parts_of_a_row_whole_screens_and_lists_that_scroll() -> None:
    star = Node("CheckBox", (900, 300, 1000, 400), checkable=True, clickable=True)
    assert shown(row(300, text(300, "Tea"), star)) == ['item "Tea"', 'checkbox "Tea" off']
    whole = Node("FrameLayout", (0, 0, *SIZE), row(300, text(300, "Save")), clickable=True)
    assert shown(whole) == ['item "Save"']
    rows = Node("RecyclerView", (0, 300, 1000, 900), row(300, text(300, "A")), scrollable=True)
    assert shown(rows) == ['item "A"', 'label "more" scrollable']


def test_what_is_hidden_or_outside_is_not_listed() -> None:
    assert shown(
        text(300, "hidden", clickable=True, is_visible_to_user=False),
        text(2100, "below", clickable=True),
        Node("Button", (5, 300, 5, 400), text="thin", clickable=True),
    ) == []  # fmt: skip
