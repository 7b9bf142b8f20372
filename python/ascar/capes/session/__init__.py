"""A session on one machine: the processes of the online loop, started, supervised and ended together."""
