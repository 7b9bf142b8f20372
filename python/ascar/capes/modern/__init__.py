"""The modern learner: a model of performance over settings for each workload, and the choice of visits."""
