"""Deep Q-learning over a session's ticks, as CAPES published it."""
