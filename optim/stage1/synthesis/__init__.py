"""The samples of the base agent's stage 1, from invented screens and demonstrations.

1. questions about a screen (:mod:`.curriculum`, and :mod:`.questions` for any screen);
2. one-step instructions on invented screens of random words (:mod:`.pages`, :mod:`.devices`), and
   on any screen (:mod:`.instructions`);
3. steps of an expert in an environment (:mod:`.demonstrations`).

:mod:`.curriculum` mixes them into one endless stream for the small base agent. :mod:`.walks` takes
them from episodes of the solver in an environment, for any model. Neither a language model nor a
download is needed.
"""
