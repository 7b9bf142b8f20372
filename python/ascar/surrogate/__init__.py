"""Gaussian processes as models of a loss: observations, kernel, hyperparameters, prediction, gains."""
