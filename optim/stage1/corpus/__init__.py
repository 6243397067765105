"""Samples from walks (exploratory episodes) in an environment, in a corpus on disk.

:mod:`.synthesize` walks (:mod:`.walk`) with three :mod:`.roles`, drops bad samples
(:mod:`.quality`), and stores the others (:mod:`.store`); :mod:`.exports` writes other formats.
"""
