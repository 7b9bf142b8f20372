"""A session on one machine: every process of the online loop, started, watched and ended together."""
