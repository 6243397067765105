"""Studies whose cells are ``swarm-ui`` commands: doing them, their records, and their table."""
