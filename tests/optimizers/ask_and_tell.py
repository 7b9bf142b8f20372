"""Asking an optimizer and telling it the loss, trial by trial."""

from ascar.optimizers import Evaluation
from ascar.results.trial import TrialState


def run(optimizer, loss, trials):
    """What it was told."""
    told = []
    for _ in range(trials):
        one = optimizer.ask()
        told.append(Evaluation(one, TrialState.COMPLETE, loss(one)))
        optimizer.tell(told[-1])
    return told
