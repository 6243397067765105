"""Pools of words for random parameters."""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


FIRST = _words("""
ana ben carla david elena farid grace hugo irene jonas kira leo maria nina oscar petra quinn
rosa samir tina umar vera wendy xavier yara zoe adam bella cyrus dora emil fiona gustav hana
ivan julia karim lucia marco nadia olaf paula rafael sofia tomas ursula victor willa yusuf
amara bruno celia dmitri edith felix greta hector isla jasper kemal lena milo noor
""")
LAST = _words("""
silva costa weber meyer novak kovac rossi bianchi dubois laurent garcia lopez santos pereira
smith brown taylor wilson clark lewis walker young hill green baker carter murphy kelly ryan
larsen berg lind holm virtanen korhonen nowak wolski petrov ivanova demir kaya haddad nasser
okafor mensah diallo toure tanaka sato suzuki kimura chen wang zhang huang kim park lee patel
sharma gupta singh khan
""")
NOUNS = _words("""
garden river mountain bridge window piano guitar lantern candle pencil basket bottle hammer
ladder mirror pillow blanket carpet kettle teapot saucer napkin anchor sailor harbor island
desert forest meadow valley canyon glacier volcano comet planet rocket satellite engine wheel
bicycle tractor wagon ticket passport suitcase umbrella jacket sweater button zipper ribbon
necklace bracelet diamond silver copper marble granite pebble feather falcon sparrow pigeon
rabbit turtle dolphin penguin camel zebra tiger panther leopard monkey donkey kitten puppy
lemon orange banana cherry apple melon mango papaya walnut almond pepper ginger garlic onion
carrot potato tomato cabbage spinach mushroom butter cheese yogurt honey sugar coffee tea cocoa
biscuit muffin pancake waffle noodle dumpling sandwich salad soup stew puzzle domino chess kite
balloon whistle trumpet violin drum poster painting camera pocket wallet purse locket magnet
compass telescope microscope battery cable printer scanner keyboard speaker library museum
theater stadium temple castle tower palace cottage cabin barn mill
""")
VERBS = _words("""
buy paint repair clean find return borrow sell wash move collect order pack sketch measure
polish store label lift replace
""")
DISTRACTORS = _words("""
help share sort filter search print about archive export info
""")
"""Buttons that do nothing for any task."""
FILLERS = _words("""
terms privacy news cart rewards feedback subscribe advert offers careers press partners legal
cookies licence community forum tips tutorial upgrade premium invite rating survey banner trending
nearby stories highlights sponsored support language region accessibility imprint donate affiliates
coupons events gifts
""")
"""Filler labels for long screens, which open nothing; labels used by the app are skipped."""
