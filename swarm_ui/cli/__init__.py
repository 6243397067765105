"""The command ``swarm-ui``: one file a command, all of it over the public library.

Nothing here is imported by the rest of the library, so ``import swarm_ui`` does not need typer.
"""
