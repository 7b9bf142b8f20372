"""Simulated environments for learners: a game and a storage cluster, and contests on them."""
