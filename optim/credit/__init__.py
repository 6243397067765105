"""Credit for every message of an episode.

```text
``assigners``  critics, outcome, progress, counterfactual and Shapley credit, mixtures
``trust``      the weight of a critic, learned from outcomes
``analysis``   calibration and comparison of assigners: ``swarm-ui credit RUN``
```
"""
