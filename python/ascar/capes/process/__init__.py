"""The learner's process: observations, policies, the action queue, training, and the stored state."""
