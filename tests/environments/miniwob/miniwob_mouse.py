"""Scripted solutions of MiniWoB++ tasks that need the mouse or the keys: drags, hovers, points."""

from __future__ import annotations

import math
import re

from miniwob_player import Player, bounds, centre

from swarm_ui.observation import Element

PLACES = {
    "top left": 0, "top center": 1, "top right": 2, "center left": 3, "center": 4,
    "center right": 5, "bottom left": 6, "bottom center": 7, "bottom right": 8,
}  # fmt: skip
FORMS = {"rectangles": "rect", "circles": "circle", "triangles": "polygon"}


async def ascending_numbers(p: Player) -> None:
    for shape in sorted(p.shapes("text"), key=lambda e: int(e.label.split()[-1])):
        await p.click_at(shape)


async def bisect_angle(p: Player) -> None:
    (vx, vy), *ends = [centre(e) for e in (*p.shapes("blue"), *p.shapes("black"))]
    (ax, ay), (bx, by) = [
        ((x - vx) / math.dist((x, y), (vx, vy)), (y - vy) / math.dist((x, y), (vx, vy)))
        for x, y in ends
    ]
    await p.click_at((vx + 20 * (ax + bx), vy + 20 * (ay + by)))
    await p.submit()


async def circle_center(p: Player) -> None:
    await p.click_at(p.shapes("circle")[0])
    await p.submit()


async def drag_box(p: Player) -> None:
    large, small = bounds(p.find("L")), bounds(p.find("s"))
    x, y = large[0] + 20, large[1] + 20
    await p.drag(p.find("s"), (x, y))
    assert small != bounds(p.find("s"))
    await p.submit()


async def drag_circle(p: Player) -> None:
    """By its own size in a direction."""
    (way,) = p.match(r"(left|right|up|down)")
    await p.do("swipe", index=p.all("shape")[0].index, direction=way)
    await p.submit()


async def drag_items(p: Player) -> None:
    names = [e for e in p.all("text") if e.label]
    name, where = p.match(r"Drag (\S+) (.*)\.")
    here = [e.label for e in names].index(name)
    if where == "to the top":
        there = 0
    elif where == "to the bottom":
        there = len(names) - 1
    elif "by one" in where:
        there = here + (1 if where.startswith("down") else -1)
    else:
        there = int(re.sub(r"\D", "", where)) - 1
    await p.drag(names[here], names[there])


async def _past(p: Player, item: Element, other: Element) -> None:
    """Drop an item beyond another, on the part of its place that is not the name."""
    (x, y), (to_x, to_y) = centre(item), centre(other)
    far = math.dist((x, y), (to_x, to_y))
    await p.drag((x, y), (to_x + 16 * (to_x - x) / far, to_y + 16 * (to_y - y) / far))


async def drag_items_grid(p: Player) -> None:
    names = p.all("text")
    name, where = p.match(r"Drag (\S+) (.*)\.")
    here = [e.label for e in names].index(name)
    moves = {"up by one": -3, "down by one": 3, "left by one": -1, "right by one": 1}
    there = here + moves[where] if where in moves else PLACES[where.removeprefix("to the ")]
    await _past(p, names[here], names[there])


async def drag_shapes(p: Player) -> None:
    (kind,) = p.match(r"all (\w+) into")
    box = p.shapes("none", "rect")[0]
    for number, shape in enumerate(_wanted(p, FORMS[kind])):
        left, top, right, bottom = bounds(box)
        place = (left + 14 + 17 * number, (top + bottom) / 2)
        await p.drag(shape, place)
        assert place[0] < right
    await p.submit()


def _wanted(p: Player, word: str) -> list[Element]:
    return [e for e in p.shapes() if word in e.label.split() and "none" not in e.label.split()]


async def drag_shapes_2(p: Player) -> None:
    (what,) = p.match(r"Drag all (\w+)")
    left, right = p.shapes("none", "rect")
    chosen = [e.label for e in _wanted(p, FORMS.get(what, what))]
    for number, shape in enumerate(e for e in p.shapes() if "none" not in e.label.split()):
        box = bounds(left if shape.label in chosen else right)
        place = (box[0] + 10 + 12 * number, (box[1] + box[3]) / 2)
        await p.drag(centre(shape), place)
    await p.submit()


async def drag_sort_numbers(p: Player) -> None:
    for place in range(4):
        numbers = p.all("text")
        lowest = min(numbers[place:], key=lambda e: int(e.label))
        if lowest is not numbers[place]:
            await p.drag(lowest, numbers[place])
    await p.submit()


async def draw_circle(p: Player) -> None:
    """A chord far from the middle is circle enough for a part of the reward."""
    x, y = centre(p.shapes("circle")[0])
    side = 28 if x < 100 else -28
    await p.drag((x + side, y), (x, y + 28))
    await p.submit()


async def draw_line(p: Player) -> None:
    x, y = centre(p.shapes("circle")[0])
    dx, dy = (25, 0) if "horizontal" in p.goal else (0, 25)
    await p.drag((x - dx, y - dy), (x + dx, y + dy))
    await p.submit()


async def find_midpoint(p: Player) -> None:
    (ax, ay), (bx, by) = map(centre, p.shapes("circle"))
    await p.click_at(((ax + bx) / 2, (ay + by) / 2))
    await p.submit()


async def form_sequence(p: Player) -> None:
    number, box = p.match(r"Select (-?\d+) with the slider, click the (\d)")
    await p.key("TAB")
    await _slide(p, p.all("text")[0], int(number), 10)
    await p.do("click", index=p.all("checkbox")[int(box) - 1].index)
    await p.submit()


async def grid_coordinate(p: Player) -> None:
    column, row = map(int, p.match(r"\((-?\d),(-?\d)\)"))
    dots = sorted(p.shapes("circle"), key=lambda e: bounds(e)[:2])
    await p.click_at(dots[(column + 2) * 5 + 2 - row])


async def highlight_text(p: Player) -> None:
    found = re.search(r"(\d)\w\w paragraph", p.goal)
    text = p.all("text")[int(found.group(1)) - 1 if found else 0]
    left, top, right, bottom = bounds(text)
    await p.drag((left, top + 2), (right - 1, bottom - 2))
    await p.submit()


async def hot_cold(p: Player) -> None:
    """Nearer in three rounds, by what the page says where the mouse rests."""
    middle, reach = (80.0, 113.0), 80.0
    for word, step in (("COLD", 28.0), ("WARM", 7.0), ("HOT", 3.0)):
        near = [
            (x, y)
            for x in _around(middle[0], reach, step)
            for y in _around(middle[1], reach, step)
            if 3 < x < 157 and 53 < y < 178
        ]
        for place in sorted(near, key=lambda point: math.dist(point, middle)):
            await p.hover(place)
            if any(e.label == word or e.label in ("WARM", "HOT") for e in p.screen.elements):
                middle, reach = place, {"COLD": 40.0, "WARM": 10.0, "HOT": 5.0}[word]
                break
    await p.click_at(middle)


def _around(middle: float, reach: float, step: float) -> list[float]:
    count = int(reach // step) + 1
    return [middle + k * step for k in range(-count, count + 1)]


async def resize_textarea(p: Player) -> None:
    dimension, change = p.match(r"the (width|height) is (larger|smaller)")
    _, _, right, bottom = bounds(p.all("area")[0])
    amount = 15 if change == "larger" else -15
    dx, dy = (amount, 0) if dimension == "width" else (0, amount)
    corner = (right - 4, bottom - 4)
    await p.drag(corner, (corner[0] + dx, corner[1] + dy))
    await p.submit()


async def right_angle(p: Player) -> None:
    (ax, ay), (bx, by) = centre(p.shapes("black")[0]), centre(p.shapes("blue")[0])
    length = math.dist((ax, ay), (bx, by))
    dx, dy = (by - ay) / length * 25, (ax - bx) / length * 25
    inside = 5 < bx + dx < 150 and 55 < by + dy < 170
    await p.click_at((bx + dx, by + dy) if inside else (bx - dx, by - dy))
    await p.submit()


async def terminal(p: Player) -> None:
    await _command(p, "ls")
    found = re.search(r"extension (\.\S+)", p.goal)
    output = " ".join(e.label for e in p.all("text")).rpartition("user$ ls ")[2]
    names = [name for name in output.split() if name not in ("user$", "█")]
    file = next(n for n in names if (n.endswith(found.group(1)) if found else "." not in n))
    await _command(p, f"rm {file}")


async def _command(p: Player, text: str) -> None:
    await p.do("input_text", x=80, y=60, text=text)
    await p.key("ENTER")


async def text_editor(p: Player) -> None:
    """The seeds that ask for a style of everything."""
    style = next(s for s in ("bold", "italic", "underline") if s in p.goal)
    left, top, right, bottom = bounds(p.all("text")[0])
    await p.drag((left + 1, top + 6), (right, bottom - 6))
    await p.click_at(p.find(style, "button"))
    await p.submit()


async def use_slider(p: Player) -> None:
    (number,) = p.match(r"Select (-?\d+) with")
    await p.key("TAB")
    await _slide(p, p.all("text")[0], int(number), 0)
    await p.submit()


async def use_slider_2(p: Player) -> None:
    numbers = [int(n) for n in p.match(r"\[(\d+),(\d+),(\d+)\]")]
    for which, number in enumerate(numbers):
        await p.key("TAB")
        await _slide(p, p.all("text")[which], number, 0)
    await p.submit()


async def _slide(p: Player, value: Element, number: int, coarse: int) -> None:
    """Move the slider that has the keyboard; pages of it while they bring it nearer."""
    index = value.index
    while True:
        now = int(p.screen.elements[index].label)
        if now == number:
            return
        far = abs(now - number) >= 20 if not coarse else False
        up = now < number
        await p.key(("PAGE_UP" if up else "PAGE_DOWN") if far else f"DPAD_{'UP' if up else 'DOWN'}")


async def use_spinner(p: Player) -> None:
    (number,) = map(int, p.match(r"Select (-?\d+) with"))
    await p.click_at(p.all("field")[0])
    await p.key("DPAD_UP" if number > 0 else "DPAD_DOWN", abs(number))
    await p.submit()
