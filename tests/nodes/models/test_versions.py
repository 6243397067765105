"""A version means one thing, from its publication until nobody needs it."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_ui.errors import ConfigError, ModelError
from swarm_ui.nodes.models.versions import VersionBook, parsed_version

steps = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from(["publish", "lease", "release"])),
    max_size=30,
)


@given(steps)
def test_a_version_stays_while_it_is_current_or_leased(done: list[tuple[str, str]]) -> None:
    book = VersionBook[object]()
    held: dict[str, object] = {}
    current: dict[str, str] = {}
    leases: Counter[str] = Counter()
    for name, what in done:
        if what == "publish":
            thing = object()
            version = book.publish(name, thing)
            assert version not in held  # no number twice
            held[version], current[name] = thing, version
        elif name not in current and what == "lease":
            with pytest.raises(ModelError):
                book.lease(name)
        elif what == "lease":
            version = book.lease(name)
            assert version == current[name] == book.lease(version)
            leases[version] += 2
        elif what == "release" and +leases:
            version = min(+leases)
            book.release(version)
            leases[version] -= 1
        kept = {*current.values(), *(+leases)}
        assert set(book) == kept
        assert all(book[version] is held[version] for version in kept)
        assert book.numbers == {n: parsed_version(v)[1] for n, v in current.items()}


def test_a_number_may_be_given_unless_runs_use_other_weights_under_it() -> None:
    book = VersionBook[str]()
    assert book.publish("a", "seven", 7) == "a@7"
    assert book.lease("a") == "a@7"
    with pytest.raises(ConfigError):
        book.publish("a", "other", 7)
    assert book.publish("a", "seven", 7) == "a@7"
    assert book.publish("a", "two", 2) == "a@2" == book.lease("a")
    assert book.publish("a", "eight") == "a@8"
    book.release("a@7")
    for call in (lambda: book.release("a@7"), lambda: book.lease("a@7"), lambda: book["a@7"]):
        with pytest.raises(ModelError):
            call()
    for text in ("a", "a@", "@1", "a@x"):
        with pytest.raises(ConfigError):
            parsed_version(text)
