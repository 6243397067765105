"""The samples of the base agent's stage 1, from invented screens and demonstrations.

1. questions about a screen (:mod:`.curriculum`);
2. one-step instructions on invented screens of random words (:mod:`.pages`, :mod:`.devices`);
3. steps of an expert in an environment (:mod:`.demonstrations`).

:mod:`.curriculum` mixes them into one endless stream. No language model and no download is needed.
"""
