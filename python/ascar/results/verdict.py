"""The verdict of a study's last comparison."""

from __future__ import annotations

from typing import Literal

import msgspec

from ascar.results.measurement import Count

VerdictKind = Literal["improved", "default-is-fine", "undecided", "not-verified"]
VerdictEnd = Literal["separated", "equivalent", "not-better", "runs-max", "time", "failures"]


class ObjectiveGain(msgspec.Struct, frozen=True):
    """What the last comparison says of one of several objectives.

    Attributes:
        objective: the objective, as in the study.
        best_mean: the mean of the best configuration's runs.
        default_mean: the mean of the default's runs.
        gain_relative: the gain of the best over the default's mean, above zero if it is better; null if some
            scores are not above zero.
        gain_low: lower end of its interval; all objectives' intervals hold together at `p_value_limit`.
        gain_high: upper end.
        difference: the difference of the means in the objective's unit, above zero if the best is better.
        difference_low: lower end of its interval, or None.
        difference_high: upper end, or None.
    """

    objective: str
    best_mean: float
    default_mean: float
    gain_relative: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None


class Verdict(msgspec.Struct, frozen=True):
    """What the last, interleaved comparison of the best configuration with the default says.

    Attributes:
        kind: "improved": the best is shown to beat the default; "default-is-fine": it is shown to be less
            than `margin` better, or worse; "undecided": neither is shown; "not-verified": there is nothing to
            compare, `note` says why.
        gain_relative: the gain of the best over the default's mean, e.g. 0.31; above zero is better for
            maximised and minimised objectives. It is null without a comparison, and if some scores are not
            above zero.
        gain_low: lower end of the gain's interval (confidence 1 - `p_value_limit`, at all looks together);
            None without one.
        gain_high: upper end, or None.
        p_value: always-valid, of the test that the two differ; None without a comparison.
        runs_per_side: the number of pairs of runs, failed ones included.
        best_scores: the best configuration's scores in the pairs that could be compared, in the order taken.
        default_scores: the default's in the same pairs.
        p_value_limit: the level at which the two are called different; the k-th candidate of a run has
            2^(1-k) of the study's level, so that all of them together keep it.
        note: the method in one line, or the reason why there is no comparison.
        reuse_bias: the effect of reusing the previous trial's state on the default's mean, e.g. -0.05; null
            if every trial started afresh.
        reuse_bias_low: lower end of its interval (confidence 1 - `p_value_limit`).
        reuse_bias_high: upper end.
        margin: relative difference that does not matter; 0: every difference does.
        ended: why no more pairs were made: "separated": the two are told apart; "equivalent"; "not-better":
            the best is less than `margin` better; "runs-max"; "time"; "failures": too many runs failed. None
            without a comparison.
        objectives: the gain in each of several objectives; the rest of the verdict is about their compromise.
        difference: the difference of the best and the default in the objective's unit; above zero is better
            for maximised and minimised objectives. It is null without a comparison.
        difference_low: lower end of its interval, or None.
        difference_high: upper end, or None.
        more_pairs: the number of further pairs that would probably decide an undecided comparison; null if
            it is decided, or if no number would.
        more_s: the seconds that these pairs would take.
        candidates: the number of configurations that were compared with the default; the verdict is about the
            last one, and each of the others was shown not to be better.
        against: the number of the trial whose configuration took the default's place; null: the default.
    """

    kind: VerdictKind
    gain_relative: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    p_value: float | None = None
    runs_per_side: Count = 0
    best_scores: tuple[float, ...] = ()
    default_scores: tuple[float, ...] = ()
    p_value_limit: float = 0.01
    note: str = ""
    reuse_bias: float | None = None
    reuse_bias_low: float | None = None
    reuse_bias_high: float | None = None
    margin: float = 0.0
    ended: VerdictEnd | None = None
    objectives: tuple[ObjectiveGain, ...] = ()
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    more_pairs: Count | None = None
    more_s: float | None = None
    candidates: Count = 0
    against: Count | None = None

    @property
    def is_decided(self) -> bool:
        """Whether something was shown of the best found, for or against it."""
        return self.kind in ("improved", "default-is-fine")
