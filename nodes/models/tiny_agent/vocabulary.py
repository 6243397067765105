"""The words that are tokens of the embedded agents.

In each prompt, every other word is represented by a placeholder token (a *slot*). The listed words
are general words of instructions and user interfaces, written by hand. Words of particular apps are
added from the training split only (``ScreenTokenizer(extra_words=...)``). Names, numbers and other
parameters of tasks are never added.
"""

from __future__ import annotations

_UI = """
click press tap hit select choose pick find open go the a an on in into to of and then or for with
from by at is it that this your you as both all each every nothing none any first any last button
link item text label labeled labelled cell head heading section sections icon shape field fields
area textarea textbox textboxes checkbox checkboxes radio option options widget input box list
menu tab tabs dialog page table row column form submit search login log sign cancel ok close yes
no next previous back forward reply delete trash star like share more mute retweet follow send
name email mail user username password verify date time year month day number value color genre
director address phone code city country title enter type write put fill focus check mark switch
between through below above expand navigate file folder tree named called titled matching
corresponds when done finished result results using use red green blue yellow black white purple
orange grey pink brown lime cyan magenta large small circle rect triangle polygon rectangle digit
letter closed message messages post posts book buy ticket order cheapest shortest movies directed
important image up down left right remove add new edit save copy paste start end am pm not only
one two three four five six seven eight nine ten 1st 2nd 3rd 4th 5th 6th 7th 8th 9th 10th who has
have entry element s person contact contacts site web turn off set change make create record
update rename move answer what which how many much app note notes task tasks event calendar alarm
clock timer settings setting screen home device show tell called exactly also instead do does was
were are be there same
"""
_NUMBERS = [str(i) for i in range(21)]
_PUNCTUATION = list(""".,:;"'!?@#>&-/()*+=<$%_|^~`[]{}""")

GENERAL_WORDS: tuple[str, ...] = tuple(dict.fromkeys([*_UI.split(), *_NUMBERS, *_PUNCTUATION]))
KNOWN_WORDS = tuple(word for word in GENERAL_WORDS if word.isalpha() and len(word) > 2)
"""The words that synthetic training screens use, besides random words without a token."""
