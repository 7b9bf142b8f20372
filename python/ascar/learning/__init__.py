"""Deep Q-learning: networks as plain tuples of arrays, the Q-learning step, replay. Pure."""

from ascar.learning.learner import QLearner
from ascar.learning.network import Layer, Network, forward, initialized
from ascar.learning.q_learning import Transitions, gradient, loss, targets
from ascar.learning.replay import Replay, Transition

__all__ = [
    "Layer",
    "Network",
    "QLearner",
    "Replay",
    "Transition",
    "Transitions",
    "forward",
    "gradient",
    "initialized",
    "loss",
    "targets",
]
