"""Which scripted solution solves which MiniWoB++ task, and playing them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping

import miniwob_forms as forms
import miniwob_mouse as hand
from miniwob_player import Player

from swarm_ui.environments.miniwob import MiniWobEnvironment

Solution = Callable[[Player], Awaitable[None]]

SOLUTIONS: Mapping[str, Solution] = {
    "ascending-numbers": hand.ascending_numbers,
    "bisect-angle": hand.bisect_angle,
    "choose-date": forms.pick_date,
    "choose-date-easy": forms.pick_date,
    "choose-date-medium": forms.pick_date,
    "choose-date-nodelay": forms.pick_date,
    "choose-list": forms.choose_list,
    "circle-center": hand.circle_center,
    "click-button": forms.click_button,
    "click-button-sequence": forms.click_button_sequence,
    "click-checkboxes": forms.click_checkboxes,
    "click-checkboxes-large": forms.click_checkboxes,
    "click-checkboxes-transfer": forms.click_checkboxes,
    "click-collapsible": forms.click_collapsible,
    "click-collapsible-nodelay": forms.click_collapsible,
    "click-dialog": forms.click_dialog,
    "click-dialog-2": forms.click_dialog_2,
    "click-link": forms.click_link,
    "click-option": forms.click_option,
    "click-pie": hand.click_pie,
    "click-pie-nodelay": hand.click_pie,
    "click-scroll-list": forms.click_scroll_list,
    "click-tab": forms.click_tab,
    "click-tab-2": forms.click_tab_2,
    "click-tab-2-easy": forms.click_tab_2,
    "click-test": forms.click_test,
    "click-test-2": forms.click_test_2,
    "click-test-transfer": forms.click_test_2,
    "copy-paste": forms.copy_paste,
    "drag-box": hand.drag_box,
    "drag-circle": hand.drag_one,
    "drag-items": hand.drag_items,
    "drag-items-grid": hand.drag_items_grid,
    "drag-shapes": hand.drag_shapes,
    "drag-shapes-2": hand.drag_shapes_2,
    "drag-single-shape": hand.drag_one,
    "drag-sort-numbers": hand.drag_sort_numbers,
    "draw-circle": hand.draw_circle,
    "draw-line": hand.draw_line,
    "email-inbox-delete": forms.email_inbox_delete,
    "email-inbox-important": forms.email_inbox_important,
    "enter-date": forms.enter_date,
    "enter-password": forms.enter_password,
    "enter-text": forms.enter_text,
    "enter-text-2": forms.enter_text_2,
    "enter-text-dynamic": forms.enter_text,
    "enter-time": forms.enter_time,
    "find-midpoint": hand.find_midpoint,
    "find-word": forms.find_word,
    "focus-text": forms.focus_text,
    "focus-text-2": forms.focus_text,
    "form-sequence": hand.form_sequence,
    "form-sequence-2": forms.form_sequence_2,
    "generate-number": forms.generate_number,
    "grid-coordinate": hand.grid_coordinate,
    "guess-number": forms.guess_number,
    "highlight-text": hand.highlight_text,
    "highlight-text-2": hand.highlight_text,
    "hot-cold": hand.hot_cold,
    "login-user": forms.login_user,
    "login-user-popup": forms.login_user,
    "multi-layouts": forms.multi_layouts,
    "multi-orderings": forms.multi_layouts,
    "navigate-tree": forms.navigate_tree,
    "odd-or-even": forms.odd_or_even,
    "phone-book": forms.phone_book,
    "read-table": forms.read_table,
    "read-table-2": forms.read_table,
    "resize-textarea": hand.resize_textarea,
    "right-angle": hand.right_angle,
    "scroll-text": forms.scroll_text,
    "scroll-text-2": forms.scroll_text_2,
    "search-engine": forms.search_engine,
    "sign-agreement": forms.sign_agreement,
    "simple-arithmetic": forms.simple_arithmetic,
    "social-media": forms.social_media,
    "stock-market": hand.stock_market,
    "terminal": hand.terminal,
    "text-editor": hand.text_editor,
    "unicode-test": forms.click_button,
    "use-autocomplete": forms.use_autocomplete,
    "use-autocomplete-nodelay": forms.use_autocomplete,
    "use-slider": hand.use_slider,
    "use-slider-2": hand.use_slider_2,
    "use-spinner": hand.use_spinner,
}
LONG = frozenset({"hot-cold", "stock-market", "use-slider", "use-slider-2", "form-sequence"})
"""Tasks that take their time: many steps, or waiting for something to happen."""
SEEDS: Mapping[str, tuple[int, ...]] = {
    "drag-items-grid": (0, 1, 2, 3, 4, 5, 7, 8, 9, 10),  # 6: a diagonal over other places
    "text-editor": (0, 1, 2, 5),  # a style for everything
    "click-pie": (0, 2, 3),  # the page hears no click on the slice that is chosen already
    "click-pie-nodelay": (0, 2, 3),
}
"""Of a task whose solution is for some goals only."""


def rounds(tasks: Iterable[str], seeds: Iterable[int]) -> list[tuple[str, int]]:
    """The episodes to play: each task with each seed that its solution is for."""
    wanted = list(seeds)
    return [
        (task, seed)
        for task in tasks
        for seed in (SEEDS[task][: len(wanted)] if task in SEEDS else wanted)
    ]


async def solve(env: MiniWobEnvironment, task: str, seed: int) -> Player:
    """One episode, solved as far as its script can."""
    player = Player(env, await env.reset(task=task, seed=seed))
    await SOLUTIONS[task](player)
    return player
