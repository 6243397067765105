"""Intervals for success rates and for differences between policies on the same episodes.

Outcomes are 0/1 or bools; ``None`` is an episode that a fault masked. Masked episodes are left out
(of both sides of a comparison), never counted as failures. All intervals are 95 %.

Episodes of one task template resemble each other, so an interval that treats them as independent
is too narrow. :func:`clustered_mean`, :func:`clustered_difference` and :func:`score_difference`
allow for this. They need outcomes that name their template (:func:`by_template`).

====================== ==================================== =================================
estimate               of                                   interval
====================== ==================================== =================================
wilson                 a rate                               Wilson's score interval
clustered_mean         a rate over templates and runs       hierarchical bootstrap
score_difference       two runs on the same episodes        Tango's score interval, with the
                                                            design effect of templates
clustered_difference   two policies, several training runs  hierarchical bootstrap
paired_difference      two policies, many episodes          normal
over_seeds             independent training runs            Student's t
====================== ==================================== =================================

``swarm-ui compare`` and ``eval --against`` use :func:`score_difference`.
"""

from swarm_ui.stats.clustered import clustered_difference, clustered_mean
from swarm_ui.stats.interval import (
    Interval,
    Outcome,
    Outcomes,
    by_template,
    outcomes,
    over_seeds,
    percentile_interval,
    wilson,
    wilson_of,
)
from swarm_ui.stats.paired import (
    bootstrap_difference,
    paired_difference,
    score_difference,
    tango,
)
from swarm_ui.stats.success_table import Row, markdown, table

__all__ = [
    "Interval",
    "Outcome",
    "Outcomes",
    "Row",
    "bootstrap_difference",
    "by_template",
    "clustered_difference",
    "clustered_mean",
    "markdown",
    "outcomes",
    "over_seeds",
    "paired_difference",
    "percentile_interval",
    "score_difference",
    "table",
    "tango",
    "wilson",
    "wilson_of",
]
