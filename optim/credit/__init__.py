"""Credit for every message of an episode: assigners, their mixtures, and how far to trust them.

```text
``assess``          one protocol for all; snapshots of recorded episodes
``progress``        what a step changed, by a grade or by a measure of progress
``values``          what a decision is worth: a critic's score, or the outcome
``counterfactual``  what if a message had not been said, or said otherwise
``shapley``         Shapley values of any game, exact and sampled
``coalitions``      Shapley values of the messages of a decision
``normalise``       by batch, by agent, by agent and round, by repeated state
``trust``           how far to trust a critic, learned from outcomes
``mixture``         several assigners in one, with fixed or learned weights
``ranks``           AUC and rank correlation, with intervals over episodes
``noise``           a critic made worse on purpose
``calibration``     does a critic predict the outcome, does it know what is right
``compare``         assigners side by side on the same recorded episodes
``plots``           both as pictures; ``tables``: in the terminal
``votegame``        a small world that shows what a critic's errors cost
```

``python -m swarm_ui.optim.credit EPISODES.jsonl`` compares assigners on a trace file.
"""
