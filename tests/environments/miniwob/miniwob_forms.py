"""Scripted solutions of MiniWoB++ tasks that are done by clicking, typing and choosing."""

from __future__ import annotations

import re
from datetime import datetime
from itertools import pairwise

from miniwob_player import Player

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


async def click_button(p: Player) -> None:
    await p.click(p.quoted()[0], "button")


async def click_button_sequence(p: Player) -> None:
    await p.click("ONE")
    await p.click("TWO")


async def click_checkboxes(p: Player) -> None:
    (names,) = p.match(r"Select (.*) and click Submit")
    for name in names.split(", ") if names != "nothing" else ():
        await p.click(name, "checkbox")
    await p.submit()


async def click_collapsible(p: Player) -> None:
    await p.do("click", index=p.all("heading")[0].index)
    await p.submit()


async def click_dialog(p: Player) -> None:
    await p.click("Close")


async def click_dialog_2(p: Player) -> None:
    name = p.quoted()[0]
    await p.click("Close" if name == "x" else name, "button")


async def click_link(p: Player) -> None:
    await p.click(p.quoted()[0], "link")


async def click_option(p: Player) -> None:
    (name,) = p.match(r"Select (.*) and click Submit")
    await p.click(name, "radio")
    await p.submit()


async def click_scroll_list(p: Player) -> None:
    (names,) = p.match(r"Select (.*) from the scroll list")
    for name in names.split(", "):
        await p.do("select", index=p.find(name, "option").index, text=name)
    await p.submit()


async def click_tab(p: Player) -> None:
    (number,) = p.match(r"Tab #(\d)")
    await p.click(f"Tab #{number}", "link")


async def click_tab_2(p: Player) -> None:
    name = p.quoted()[0]
    for tab in [e.label for e in p.screen.elements if e.label.startswith("Tab #")]:
        await p.click(tab, "link")
        if p.has(name, "link"):
            return await p.click(name, "link") and None


async def click_test(p: Player) -> None:
    await p.click("Click Me!")


async def click_test_2(p: Player) -> None:
    await p.click("ONE")


async def choose_list(p: Player) -> None:
    (name,) = p.match(r"Select (.*) from the list")
    await p.do("select", index=p.find(name, "option").index, text=name)
    await p.submit()


async def copy_paste(p: Player) -> None:
    await p.fill(p.all("field")[0], p.all("area")[0].value or "")
    await p.submit()


async def email_inbox_delete(p: Player) -> None:
    (name,) = p.match(r"by (\w+) and")
    await p.do("click", index=p.after(name, "trash").index)


async def email_inbox_important(p: Player) -> None:
    (name,) = p.match(r"by (\w+) and")
    await p.do("click", index=p.after(name, "star").index)


async def enter_date(p: Player) -> None:
    (date,) = p.match(r"Enter (\S+) as")
    await p.fill(p.all("field")[0], date)
    await p.submit()


async def enter_time(p: Player) -> None:
    (time,) = p.match(r"Enter (.*) as the time")
    await p.fill(p.all("field")[0], time)
    await p.submit()


async def enter_password(p: Player) -> None:
    for field in p.all("field"):
        await p.fill(field, p.quoted()[0])
    await p.submit()


async def enter_text(p: Player) -> None:
    await p.fill(p.all("field")[0], p.quoted()[0])
    await p.submit()


async def enter_text_2(p: Player) -> None:
    text = p.quoted()[0]
    await p.fill(p.all("field")[0], text.lower() if "lower case" in p.goal else text.upper())
    await p.submit()


async def find_word(p: Player) -> None:
    (number,) = p.match(r"Find the (\d+)\w\w word")
    words = " ".join(e.label for e in p.all("text")).split()
    await p.fill(p.all("field")[0], re.sub(r"\W", "", words[int(number) - 1]))
    await p.submit()


async def focus_text(p: Player) -> None:
    found = re.search(r"the (\d)", p.goal)
    number = int(found.group(1)) if found else 1
    await p.do("click", index=p.all("field")[number - 1].index)


async def form_sequence_2(p: Player) -> None:
    radio, number, box = p.match(r'the (\d).. radio button and enter the number "(.*)" .* (\d)..')
    await p.do("click", index=p.all("radio")[int(radio) - 1].index)
    await p.fill(p.all("field")[int(box) - 1], number)
    await p.submit()


async def generate_number(p: Player) -> None:
    compared = re.search(r"(greater|less) than (\d+)", p.goal)
    number = None
    while number is None or not _fits(number, p.goal, compared):
        await p.click("Generate")
        number = int(p.screen.elements[0].label)
    await p.submit()


def _fits(number: int, goal: str, compared: re.Match[str] | None) -> bool:
    if compared is None:
        return number % 2 == ("odd" in goal)
    limit = int(compared.group(2))
    return number > limit if compared.group(1) == "greater" else number < limit


async def guess_number(p: Player) -> None:
    low, high = 0, 9
    while not p.ended:
        guess = (low + high) // 2
        await p.fill(p.all("field")[0], str(guess))
        await p.submit()
        low, high = (guess + 1, high) if "higher" in str(p.screen.elements) else (low, guess - 1)


async def login_user(p: Player) -> None:
    name, password = p.quoted()
    for text, label in ((name, "Username"), (password, "Password")):
        await p.fill(p.find(label, "field"), text)
        if p.has("Cancel", "button"):  # something popped up
            await p.click("Cancel", "button")
            await p.fill(p.find(label, "field"), text)
    await p.do("click", index=p.all("button")[0].index)


async def multi_layouts(p: Player) -> None:
    genre, director, year = p.match(r"for (\w+) movies directed by (\w+) from year (\d+)")
    for label, text in (("Genre", genre), ("Director", director), ("Year|Date", year)):
        await p.fill(next(e for e in p.all("field") if re.search(label, e.label)), text)
    button = next(e for e in p.screen.elements if e.label in ("Submit", "Search", "Go!"))
    await p.do("click", index=button.index)


async def navigate_tree(p: Player) -> None:
    name, opened = p.quoted()[0], set()
    while not p.has(name):
        folder = next(
            item.label
            for icon, item in pairwise(p.screen.elements)
            if "expandable" in icon.label and item.label not in opened
        )
        opened.add(folder)
        await p.click(folder)
    await p.click(name)


async def odd_or_even(p: Player) -> None:
    for number, box in enumerate(p.all("text")):
        kind = "Odd" if int(box.label) % 2 else "Even"
        buttons = [e for e in p.all("button") if e.label == kind]
        await p.do("click", index=buttons[number].index)
    await p.submit()


async def phone_book(p: Player) -> None:
    name, kind = p.match(r"Find (\w+) in .* their ([\w ]+)\.")
    while not p.has(name):
        await p.click(">", "link")
    label = {"phone number": "Phone:", "email": "Email:", "address": "Address:"}[kind]
    await p.do("click", index=p.find(label).index + 1)


async def choose_date(p: Player) -> None:
    (date,) = p.match(r"Select (\S+) as the date")
    day = datetime.strptime(date, "%m/%d/%Y")
    await p.do("click", index=p.all("field")[0].index)
    while not p.has(MONTHS[day.month - 1]):
        shown = next(e.label for e in p.screen.elements if e.label in MONTHS)
        await p.click("Prev" if MONTHS.index(shown) >= day.month else "Next")
    await p.click(str(day.day), "link")
    await p.submit()


async def read_table(p: Player) -> None:
    cells = [e.label for e in p.all("cell")]
    told = dict(zip(cells[::2], cells[1::2], strict=True))
    found = re.search(r"value of (.*) into", p.goal)
    for field in p.all("field"):
        await p.fill(field, told[found.group(1) if found else field.label.rstrip(":")])
    await p.submit()


async def scroll_text(p: Player) -> None:
    words = (p.all("area")[0].value or "").split()
    await p.fill(p.all("field")[0], re.sub(r"\W", "", words[-1]))
    await p.submit()


async def scroll_text_2(p: Player) -> None:
    (end,) = p.match(r"to the (top|bottom)")
    area = p.all("area")[0].index
    await p.do("scroll", index=area, direction="down" if end == "bottom" else "up")
    await p.submit()


async def search_engine(p: Player) -> None:
    text, number = p.match(r'enter "(.*)" and press .* the (\d+)\w\w search')
    await p.fill(p.all("field")[0], text)
    await p.click("Search")
    rank = int(number) - 1
    for _ in range(rank // 3):
        await p.click(">", "link")
    links = [e for e in p.all("link") if not re.fullmatch(r"\d+|[<>]", e.label)]
    await p.do("click", index=links[rank % 3].index)


async def sign_agreement(p: Player) -> None:
    found = re.search(r'name "(.*)" then press "(.*)"', p.goal)
    if found is None:
        (button,) = p.match(r"Click the (\w+) button")
        return await p.click(button.capitalize()) and None
    await p.do("scroll", index=p.all("area")[0].index, direction="down")
    await p.fill(p.all("field")[0], found.group(1))
    await p.click(found.group(2))


async def simple_arithmetic(p: Player) -> None:
    left, sign, right = p.screen.elements[0].label.rstrip(" =").split()
    a, b = int(left), int(right)
    await p.fill(p.all("field")[0], str({"+": a + b, "-": a - b}.get(sign, a * b)))
    await p.submit()


async def social_media(p: Player) -> None:
    user, what = p.match(r'user (\S+), click on the "(.*)" button')
    if what in ("Reply", "Retweet", "Like"):
        return await p.do("click", index=p.after(user, what.lower()).index) and None
    await p.do("click", index=p.after(user, "more").index)
    label = f"{what} {user}" if what in ("Mute", "Block") else what
    await p.do("click", index=p.after(user, label).index)


async def use_autocomplete(p: Player) -> None:
    start = p.quoted()[0]
    end = p.quoted()[-1] if "ends" in p.goal else ""
    await p.do("input_text", x=60, y=82, text=start)
    item = next(e for e in p.all("item") if e.label.startswith(start) and e.label.endswith(end))
    await p.do("click", index=item.index)
    await p.submit()
