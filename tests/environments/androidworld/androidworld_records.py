"""Scripts for android_world's expenses and recipes: records added, found and deleted."""

from __future__ import annotations

import re

from androidworld_player import Player, Script, Scripts, Seen, Stuck

Match = re.Match[str]
_LIST = 380
"""Pixels above which there are title and search field."""
BAR = 250
"""Pixels above which there is the title."""
EXPENSE = {"name": "Name", "amount_dollars": "Amount", "note": "Note"}
RECIPE = {
    "title": "Title",
    "description": "Description",
    "servings": "Servings",
    "preparationTime": "Preparation time",
    "ingredients": "Ingredients",
    "directions": "Directions",
}


def records(text: str) -> list[dict[str, str]]:
    """Records told as lines with bars between, or as blocks of ``key: value``."""
    if "|" in text:
        keys, *rows = (line.split("|") for line in text.strip().split("\n"))
        return [dict(zip(keys, row, strict=True)) for row in rows]
    found: list[dict[str, str]] = []
    for line in text.strip().split("\n"):
        key, _, value = line.partition(": ")
        if key in ("Expense", "Recipe"):
            found.append({"name" if key == "Expense" else "title": value})
        elif key.strip():
            found[-1][key.strip()] = value
    return found


def add_expenses(me: Player, text: str, only: str = "") -> Script:
    yield from me.open("pro expense")
    for row in records(text):
        if only and only not in row["note"]:
            continue
        row["note"] = row["note"].removesuffix(f". {only}.")
        yield from me.tap("Add expense")
        yield from me.tap("Category")
        yield from me.tap(row["category_name"])
        for key, hint in EXPENSE.items():
            yield from me.write(hint, row[key].lstrip("$"))
        yield from me.tap("Save")


def add_recipes(me: Player, text: str, prep: str = "") -> Script:
    yield from me.open("broccoli app")
    for row in records(text):
        if prep and row["preparationTime"] != prep:
            continue
        yield from me.tap("New recipe")
        for key, hint in RECIPE.items():
            yield from me.write(hint, row[key])
        yield from me.tap("Save")


def expenses(me: Player, found: Match) -> Script:
    yield from add_expenses(me, found[1])


def recipes(me: Player, found: Match) -> Script:
    yield from add_recipes(me, found[1])


def expenses_from_note(me: Player, found: Match) -> Script:
    yield from me.open("markor")
    yield from me.tap("my_expenses.txt")
    yield from add_expenses(me, me.field("Text").text, "Reimbursable")


def recipes_from_note(me: Player, found: Match) -> Script:
    yield from me.open("markor")
    yield from me.tap("recipes.txt")
    prep = found[1] if found.lastindex else ""
    yield from add_recipes(me, me.field("Text").text, prep)


def rows(me: Player, below: int) -> list[tuple[Seen, str]]:
    """Title and subtitle of each row of a list that begins ``below`` so many pixels."""
    texts = [one for one in me.screen if one.kind == "TextView" and one.top > below]
    return [(one, two.text) for one, two in zip(texts[::2], texts[1::2], strict=False)]


def delete_row(me: Player, row: Seen) -> Script:
    yield {"action_type": "click", "index": row.index}
    yield from me.tap("Delete")
    yield from me.tap("Delete", last=True)


def delete_named(me: Player, found: Match) -> Script:
    """Records by their titles, each found with the search."""
    yield from me.open(found[1])
    for title in found[2].split(", "):
        yield from me.write("Search", title, clear=True)
        found_rows = [one for one, _ in rows(me, _LIST) if one.text == title]
        if not found_rows:
            raise Stuck(f"no record {title!r}")
        yield from delete_row(me, found_rows[0])


def delete_duplicate_expense(me: Player, found: Match) -> Script:
    yield from me.open("pro expense")
    seen: list[tuple[str, str]] = []
    while True:
        now = [(one, one.text, said) for one, said in rows(me, _LIST)]
        # A page begins with the last row of the one before.
        for one, *pair in now[1:] if seen else now:
            if tuple(pair) in seen:
                yield from delete_row(me, one)
                return
            seen.append((pair[0], pair[1]))
        yield from me.scroll()


def delete_duplicate_recipe(me: Player, found: Match) -> Script:
    """Open those whose title and description are the same, and compare all the rest."""
    yield from me.open("broccoli app")
    heads: list[tuple[str, str]] = []

    def look() -> None:
        now = [(one.text, said) for one, said in rows(me, _LIST)]
        heads.extend(now[1:] if heads else now)

    yield from me.pages(look)
    for title, description in sorted(
        {head for head in heads if heads.count(head) > 1},
        key=lambda head: (-heads.count(head), head),
    ):
        yield from me.write("Search", title, clear=True)
        known: set[str] = set()
        same = [(title, description) == (one.text, said) for one, said in rows(me, _LIST)]
        for place in [k for k, is_same in enumerate(same) if is_same]:
            yield {"action_type": "click", "index": rows(me, _LIST)[place][0].index}
            told = "|".join(one.text for one in me.screen if one.top > BAR)
            if told in known:
                yield from me.tap("Delete")
                yield from me.tap("Delete", last=True)
                return
            known.add(told)
            yield from me.back()
    raise Stuck("no duplicates")


def delete_by_ingredient(me: Player, found: Match) -> Script:
    yield from me.open("broccoli app")
    yield from me.write("Search", found[1])
    while not me.has("Nothing here"):
        yield from delete_row(me, rows(me, _LIST)[0][0])


RECORDS: Scripts = [
    (
        r"Delete the recipes from Broccoli app that use (.+) in the directions\.",
        delete_by_ingredient,
    ),
    (r"Add the following expenses into the pro expense:\n(.+)", expenses),
    (r"Go through the transactions in my_expenses.txt in Markor\. .*", expenses_from_note),
    (r"Delete the following expenses from (pro expense): (.+)\.", delete_named),
    (r"Delete all but one of any expenses in .*", delete_duplicate_expense),
    (r"Add the following recipes into the Broccoli app:\n(.+)", recipes),
    (r"Add the recipes from recipes.txt in Markor to the Broccoli recipe app\.", recipes_from_note),
    (r"Add the recipes from recipes.txt in Markor that take (.+) to prepare .*", recipes_from_note),
    (r"Delete the following recipes from (Broccoli app): (.+)\.", delete_named),
    (r"Delete all but one of any recipes in .*", delete_duplicate_recipe),
]
