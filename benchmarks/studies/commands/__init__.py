"""Studies that consist of ``swarm-ui`` commands: running them, their records, and the table."""
