"""Stage 1's data: three levels of lessons, synthesised without any model or download.

1. questions about a screen (:mod:`.questions`);
2. one-step instructions on invented screens of random words (:mod:`.pages`, :mod:`.devices`);
3. steps of successful trajectories in an environment (:mod:`.demonstrations`).
"""
