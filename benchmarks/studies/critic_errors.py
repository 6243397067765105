"""How many errors may a critic make, and does a learned weight of the critic help?"""

from __future__ import annotations

from benchmarks.study import Study

WITHOUT = "without a critic (outcome)"
CRITICS = ("no errors", "10 % errors", "30 % errors", "anti-correlated")
TRUST = ("trusted blindly", "learned weight")
STUDY = Study(
    named=(
        ("no errors, trusted blindly", WITHOUT),
        ("30 % errors, learned weight", WITHOUT),
        ("30 % errors, learned weight", "30 % errors, trusted blindly"),
    ),
    explored=(
        ("untrained", WITHOUT),
        *((f"{critic}, {trust}", WITHOUT) for critic in CRITICS for trust in TRUST
          if (critic, trust) not in (("no errors", TRUST[0]), ("30 % errors", TRUST[1]))),
        *((f"{critic}, {TRUST[1]}", f"{critic}, {TRUST[0]}") for critic in CRITICS
          if critic != "30 % errors"),
    ),
    shown=("anti-correlated, trusted blindly", WITHOUT),
)  # fmt: skip
