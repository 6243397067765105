"""What learning gains a team, beside ablations and controls."""
