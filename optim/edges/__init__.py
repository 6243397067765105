"""Distributions over the edges of a team, and how they are learned.

Every distribution draws ``EdgeSample`` records. Every learner has one method,
``step(samples, utilities, credit=None, groups=None)``.
"""
