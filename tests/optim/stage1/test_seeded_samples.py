"""Equal seeds give the same corpus in every version."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from corpus_fakes import scripted_corpus


async def test_a_corpus(tmp_path: Path) -> None:
    await scripted_corpus(tmp_path / "c", 4)
    found = [
        sha256((tmp_path / "c" / name).read_bytes()).hexdigest()[:16]
        for name in ("samples.jsonl", "journal.jsonl")
    ]
    assert found == ["a8a12667d66700b1", "a9419b1793241305"]
