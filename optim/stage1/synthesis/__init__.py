"""The samples of the base agent's stage 1, from invented screens and demonstrations.

1. questions about a screen (:mod:`.curriculum`, and :mod:`.questions` for any screen);
2. one-step instructions on invented screens of random words (:mod:`.pages`, :mod:`.devices`), and
   on any screen (:mod:`.instructions`);
3. steps of an expert in an environment (:mod:`.demonstrations`).

:mod:`.curriculum` mixes them into one endless stream for the small base agent, :mod:`.walks` takes
them from walks through an environment, for any model. No language model and no download is needed.
"""
