"""The command ``swarm-ui``: one file for each command, based only on the public library.

Nothing here is imported by the rest of the library, so ``import swarm_ui`` does not need typer.
"""
