"""How the included small agents were made: invented screens, demonstrations, and training.

:mod:`.screens`, :mod:`.pages` and :mod:`.devices` invent screens with an instruction;
:mod:`.stream` mixes them with demonstrations on the phone; :mod:`.training` trains all weights of a
small agent; :mod:`.recipes` has the settings of the included agents.

    python -m demos.base_agent base --out my_agent
    python -m demos.base_agent general --out my_general_agent
"""
