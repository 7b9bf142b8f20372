"""A model of performance over settings, for each workload, and where to go next."""
