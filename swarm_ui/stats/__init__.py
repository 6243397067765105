"""Intervals for success rates and for differences between policies on the same episodes.

Outcomes are 0/1 or bools; ``None`` is an episode that a fault masked. Masked episodes are left out
(of both sides of a comparison), never counted as failures. All intervals are 95 %.

Episodes of one task template resemble each other, so an interval that treats them as independent
is too narrow. All estimates below but ``wilson`` and ``over_seeds`` allow for this: their outcomes
name the template (:func:`outcomes`).

====================== ==================================== =================================
estimate               of                                   interval
====================== ==================================== =================================
wilson                 a rate                               Wilson's score interval
clustered_mean         a rate over templates and runs       hierarchical bootstrap
paired_difference      two policies, the same episodes      Tango's score interval, with the
                                                            design effect of templates
clustered_difference   the same, several training runs      hierarchical bootstrap
over_seeds             independent training runs            Student's t
====================== ==================================== =================================

``swarm-ui compare``, ``eval --against`` and reports use :func:`paired_difference`.
"""

from swarm_ui.stats.intervals import (
    Interval,
    Measure,
    Outcome,
    Outcomes,
    outcomes,
    over_seeds,
    percentile_interval,
    wilson,
    wilson_of,
)
from swarm_ui.stats.paired_clustered import (
    clustered_difference,
    clustered_mean,
    paired_difference,
    tango,
)

__all__ = [
    "Interval", "Measure", "Outcome", "Outcomes", "clustered_difference",
    "clustered_mean", "outcomes", "over_seeds", "paired_difference",
    "percentile_interval", "tango", "wilson", "wilson_of",
]  # fmt: skip
