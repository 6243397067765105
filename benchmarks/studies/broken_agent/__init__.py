"""One broken agent in a team: found from credit, and cut out."""
