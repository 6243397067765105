"""One broken agent in a team is identified by its credit and removed."""
