"""The Rust half: Pilot's mathematics, trees, the simulated cluster, streams of clients.

Refusals are ValueErrors: argument or key, value, what is allowed. Those of formulas are ExpressionErrors.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from ascar.pilot.presets import Goal
from ascar.pilot.round import Round

# A number gives a number; an array one of its shape, element by element.
_Numbers = TypeVar("_Numbers", float, NDArray[np.float64])

__version__: str
KEPT_S_MAX: float
TRIAL_S_MAX: float

@final
class Analysis:
    """What a series of readings says; everything but the change points is about the stable phase."""

    @property
    def n(self) -> int: ...
    @property
    def mean(self) -> float: ...
    @property
    def ci_low(self) -> float | None: ...
    @property
    def ci_high(self) -> float | None: ...
    @property
    def confidence(self) -> float: ...
    @property
    def autocorrelation(self) -> float: ...
    @property
    def subsession_size(self) -> int | None: ...
    @property
    def subsessions(self) -> int | None: ...
    @property
    def subsession_variance(self) -> float | None: ...
    @property
    def effective_n(self) -> float: ...
    @property
    def stable_start(self) -> int: ...
    @property
    def stable_end(self) -> int: ...
    @property
    def change_points(self) -> list[int]: ...
    @property
    def removed(self) -> list[tuple[int, int, Literal["level", "settling", "edge"]]]: ...
    @property
    def method(self) -> Literal["corrected", "faithful"]: ...
    @property
    def reason(self) -> str | None: ...

def analyze(
    values: NDArray[np.float64],
    *,
    confidence: float = 0.95,
    autocorrelation_limit: float = 0.1,
    method: Literal["corrected", "faithful"] = "corrected",
    min_segment: int = 30,
) -> Analysis: ...
def autocorrelation(values: NDArray[np.float64], lag: int = 1) -> float: ...
def effective_sample_size(values: NDArray[np.float64]) -> float: ...
def subsession_size(values: NDArray[np.float64], autocorrelation_limit: float = 0.1) -> int | None: ...
def change_points(values: NDArray[np.float64], *, min_segment: int = 30) -> list[int]: ...
def edm_change_points(
    values: NDArray[np.float64], *, min_segment: int = 30, percent: float = 0.25, degree: Literal[0, 1, 2] = 1
) -> list[int]: ...

@final
class ChangePointDetector:
    """Takes readings one by one and knows the change points so far."""

    def __new__(cls, *, min_segment: int = 30) -> ChangePointDetector: ...
    def push(self, value: float) -> None: ...
    def extend(self, values: NDArray[np.float64]) -> None: ...
    def change_points(self) -> list[int]: ...
    def __len__(self) -> int: ...

@final
class Welch:
    """The result of Welch's test of a against b; ratio limits are None where b's mean is not told from 0."""

    @property
    def difference(self) -> float: ...
    @property
    def ci_low(self) -> float: ...
    @property
    def ci_high(self) -> float: ...
    @property
    def ratio(self) -> float: ...
    @property
    def ratio_ci_low(self) -> float | None: ...
    @property
    def ratio_ci_high(self) -> float | None: ...
    @property
    def p_value(self) -> float: ...
    @property
    def dof(self) -> float: ...
    @property
    def t(self) -> float: ...
    @property
    def confidence(self) -> float: ...

def welch(a: NDArray[np.float64], b: NDArray[np.float64], confidence: float = 0.95) -> Welch: ...
def welch_samples(
    a: tuple[float, float, float], b: tuple[float, float, float], confidence: float = 0.95
) -> Welch: ...
def welch_sample_size(
    mean_a: float, sd_a: float, mean_b: float, sd_b: float, alpha: float = 0.05, power: float = 0.8
) -> int: ...

@final
class SequentialComparison:
    """The state of an always-valid comparison at one look; limits and p-value hold at all looks together."""

    @property
    def difference(self) -> float: ...
    @property
    def ci_low(self) -> float: ...
    @property
    def ci_high(self) -> float: ...
    @property
    def ratio(self) -> float: ...
    @property
    def ratio_ci_low(self) -> float | None: ...
    @property
    def ratio_ci_high(self) -> float | None: ...
    @property
    def p_value(self) -> float: ...
    @property
    def effective_n(self) -> float: ...
    @property
    def verdict(self) -> Literal["undecided", "less", "greater", "equivalent"]: ...

def sequential_compare(
    a: NDArray[np.float64], b: NDArray[np.float64], *, alpha: float = 0.05, margin: float | None = None
) -> SequentialComparison: ...
def sequential_pairs(
    a: NDArray[np.float64], b: NDArray[np.float64], *, alpha: float = 0.05, margin: float | None = None
) -> SequentialComparison: ...
def pairs_half_width(pairs: int, dof: float, *, alpha: float = 0.05, prior: float | None = None) -> float: ...
def sequential_mean(
    values: NDArray[np.float64], *, alpha: float = 0.05, large_effects: bool = False
) -> tuple[float, float] | None: ...
def sequential_first_decision(
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    *,
    first: int,
    every: int,
    alpha: float = 0.05,
    margin: float | None = None,
) -> tuple[int, Literal["less", "greater", "equivalent"]] | None: ...

@final
class WorkPerSecond:
    """What rounds of different lengths say about the stable speed; no limits where there is a reason."""

    @property
    def speed(self) -> float: ...
    @property
    def ci_low(self) -> float | None: ...
    @property
    def ci_high(self) -> float | None: ...
    @property
    def confidence(self) -> float: ...
    @property
    def overhead_s(self) -> float: ...
    @property
    def dof(self) -> float: ...
    @property
    def rounds(self) -> int: ...
    @property
    def autocorrelation(self) -> float: ...
    @property
    def reason(self) -> str | None: ...
    def predict_duration_s(self, work: float) -> float: ...

def work_per_second(
    work: NDArray[np.float64],
    duration_s: NDArray[np.float64],
    *,
    confidence: float = 0.95,
    autocorrelation_limit: float = 0.1,
) -> WorkPerSecond: ...
def mean_interval(values: NDArray[np.float64], confidence: float = 0.95) -> tuple[float, float, float]: ...
def harmonic_mean_interval(
    values: NDArray[np.float64], confidence: float = 0.95
) -> tuple[float, float, float]: ...
def proportion_interval(
    successes: int, trials: int, confidence: float = 0.95, *, method: Literal["wilson", "exact"] = "wilson"
) -> tuple[float, float, float]: ...
def percentile_interval(
    values: NDArray[np.float64], quantile: float, confidence: float = 0.95
) -> tuple[float, float, float] | None: ...
def relative_standard_deviation(values: NDArray[np.float64]) -> float: ...
def relative_range(values: NDArray[np.float64]) -> float: ...
def throughput_windows(values: NDArray[np.float64], window: int) -> NDArray[np.float64]: ...
def kolmogorov_smirnov(a: NDArray[np.float64], b: NDArray[np.float64]) -> float: ...
def distribution_range(samples: Sequence[NDArray[np.float64]]) -> float: ...
def pearson(x: NDArray[np.float64], y: NDArray[np.float64]) -> float | None: ...

@final
class Guard:
    """What protects a system while it is tuned: `[guard]` of a study."""

    def __new__(cls, table: str) -> Guard:
        """Of a table in JSON; ValueError: a key is wrong, on one line."""
    def limits(self) -> list[str]:
        """Floors and ceilings, as formulas that a mean has to fulfil."""
    def opens_in_minutes(self, day: int, minute: int) -> int | None:
        """Minutes from a moment (Sunday is day 0) to the next at which something may be changed."""

@final
class RuleEndpoint:
    """Answers a rule manager for one controller; what it answers holds once it is committed."""

    def __new__(cls, controller: str, workload: str, instance: str) -> RuleEndpoint:
        """Without rules; ValueError: a name is not a token."""
    @property
    def rules(self) -> str | None:
        """Id of the rules in force, on trial or kept."""
    @property
    def on_trial(self) -> bool: ...
    def left_s(self, now_s: float) -> float | None:
        """The time after which the rules in force end by themselves; None: they stay."""
    @property
    def ends_at_s(self) -> float | None:
        """When `expire` is due."""
    def answer(self, asked: bytes, now_s: float) -> tuple[str, bool, str | None]:
        """The answer, whether other rules are to be followed, and their text (None: none are)."""
    def expire(self, now_s: float) -> tuple[bool, str | None]:
        """End what is over: whether other rules are to be followed, and their text."""
    def commit(self) -> None:
        """What was answered or ended last is so from now on."""

@final
class Forest:
    """Extremely randomised regression trees: a mean and variances anywhere."""

    @staticmethod
    def grow(
        features: NDArray[np.float64],
        values: NDArray[np.float64],
        weights: NDArray[np.float64],
        seed: int,
        *,
        trees: int,
        leaf_min: int,
        tries: int,
        bootstrap: bool,
    ) -> Forest: ...
    def predict(
        self, features: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]: ...

EXPRESSION_DEPTH_MAX: int
EXPRESSION_LENGTH_MAX: int
EXPRESSION_RESERVED: list[str]

@final
class Expression:
    """A parsed formula. Equal where the trees are; `str` gives its canonical text, which parses to it."""

    def __new__(cls, text: str) -> Expression:
        """Parse a formula; an ExpressionError says where it goes wrong, and what was expected there."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names it mentions, each once, in order of first mention."""

    def evaluate_or_none(self, values: Mapping[str, float | str | bool | None]) -> float | str | bool | None:
        """Its value; None where it is n/a.

        Args:
            values: a value for every name; None for a parameter that is not active.

        Raises:
            ExpressionError: a name has no value, a kind does not fit, or a result is not finite.
        """

    def evaluate(self, values: Mapping[str, float | str | bool | None]) -> float | str | bool:
        """Its value, where n/a is an error too."""

    def number(self, values: Mapping[str, float | str | bool | None]) -> float:
        """Its value, where n/a and what is no number are errors too."""

    def holds(self, values: Mapping[str, float | str | bool | None]) -> bool | None:
        """Whether it is true; None where it is n/a. A result that is neither true nor false is an error."""

    def terms(self) -> tuple[str, list[tuple[float, Expression]]] | None:
        """Of a comparison of two values, its sign and its terms, each with 1 or -1; None of anything else.

        Those of the right side count negatively: `a + 1 <= b` is `<=` of a, 1 and -b, whose sum compares with
        0 as the sides compare.
        """

def expression_literal(value: float | str | bool) -> str:
    """A value as the text that parses to it (a negative number: to the minus of one)."""

GoalValues: TypeAlias = tuple[float, int, float, int, float | None]
IndicatorValues: TypeAlias = tuple[str, str, GoalValues | None]
MeasurementValues: TypeAlias = tuple[
    float,
    tuple[float | None, float | None],
    float,
    tuple[int, int],
    float,
    int,
    tuple[int, int],
    list[int],
    str,
    str,
]
UnitKindValues: TypeAlias = tuple[int, float, MeasurementValues | None]
FindingValues: TypeAlias = tuple[MeasurementValues | None, str, int, int, int, bool, list[UnitKindValues]]

def pilot_presets() -> list[tuple[str, GoalValues]]:
    """Goals by name: interval width, fewest readings, confidence, fewest rounds, None."""

def pilot_published() -> list[tuple[str, GoalValues, float]]:
    """The released Pilot's goals by name, limits on autocorrelation last, and its shortest rounds."""

def pilot_analyze(
    indicator: IndicatorValues, values: NDArray[np.float64], confidence: float
) -> MeasurementValues:
    """One round's unit readings of an indicator on their own."""

def pilot_look_is_due(readings: int, looked_at: int) -> bool:
    """Whether a series has grown enough since it was last looked at, when it had so many readings."""

@final
class Speed:
    """The speed of the stable phase."""

    @property
    def work_per_s(self) -> float:
        """The speed, v in eq. 4.4."""

    @property
    def ci_low(self) -> float | None:
        """The lower end of its interval; None where there is no honest one."""

    @property
    def ci_high(self) -> float | None: ...
    @property
    def confidence(self) -> float: ...
    @property
    def alpha_s(self) -> float:
        """Seconds that set-up, warm-up and cool-down add to a round.

        Below zero where the first part of the work is faster, as into a cache.
        """

    @property
    def autocorrelation(self) -> float:
        """Lag 1, of what the line leaves unexplained, in the order of the rounds."""

    @property
    def rounds(self) -> int:
        """Rounds that the line rests on; those whose work alpha would have had time for are left out."""

    @property
    def reason(self) -> str:
        """Why there is no interval; empty where there is one."""

    @property
    def ci_width_relative(self) -> float | None:
        """Width of the interval over the speed; None where there is none."""

    @property
    def work_min(self) -> float:
        """The work that alpha would have had time for: rounds of less tell more of alpha than of speed."""

    def meets(self, goal: Goal) -> bool:
        """Whether the interval is narrow enough, on rounds enough to stop by."""

    def seconds_for(self, work_amount: float) -> float:
        """Predicted duration of a round (eq. 4.4)."""

def speed_of(rounds: Sequence[tuple[float, float]], confidence: float) -> Speed | None:
    """The speed that rounds of (work, seconds) tell; None where they make no rising line."""

@final
class WorkAmounts:
    """How much work each round of a session does; an InputError refuses its range."""

    def __new__(
        cls,
        low: float,
        high: float,
        whole: bool = False,
        short_round_s: float = 1.0,
        longest_round_s: float = 180.0,
        first_result_s: float = 60.0,
        first_rounds: int = 50,
    ) -> WorkAmounts:
        """A schedule at its start.

        Args:
            low: least work amount allowed, above zero.
            high: most work amount allowed.
            whole: work amounts are whole numbers.
            short_round_s: shorter rounds are set aside, and the next does twice as much.
            longest_round_s: no round is planned longer than this, however much work is allowed.
            first_result_s: seconds after which a first result is wanted (60 in the thesis).
            first_rounds: rounds in that time (50 in the thesis, for the central limit theorem); fewer where
                the shortest round does not leave room for so many.
        """

    @property
    def low(self) -> float:
        """Least work amount now: raised by what trial rounds and the speed show."""

    def next(self) -> float:
        """The work amount of the next round."""

    def next_for(self, seconds: float) -> float:
        """The work amount of the next round where unit readings of so many more seconds are wanted."""

    def learn(self, done: Round) -> bool:
        """Take note of a round; says whether it is to be used."""

    def avoid(self, work_amount: float) -> None:
        """Plan no round of less work than this: too little of it would be stable."""

@final
class PilotSession:
    """A session under way, or at its end; an InputError refuses what cannot be."""

    def __new__(
        cls,
        indicators: Sequence[IndicatorValues],
        goal: GoalValues,
        work: WorkAmounts | None,
        session_s: float,
        rounds_max: int,
        speed: GoalValues | None = None,
    ) -> PilotSession: ...
    def next_work(self) -> float | None:
        """The work amount of the next round; None where the work cannot be adjusted."""

    def take(
        self,
        seconds: float,
        work_amount: float | None,
        readings: Sequence[float | None],
        unit_readings: Sequence[Sequence[float] | NDArray[np.float64]],
        units: Sequence[tuple[Sequence[int], Sequence[float]]] = (),
    ) -> bool:
        """Take in a round, its readings in the order of the indicators; says whether it is used.

        `units` are the kinds and the work of the units of each indicator, empty where they are alike.
        """

    def judge(self, elapsed_s: float, out_of_time: bool) -> bool:
        """Look at what is known; says whether the session ends."""

    @property
    def findings(self) -> list[FindingValues]: ...
    @property
    def speed(self) -> Speed | None: ...
    @property
    def speed_decides(self) -> bool: ...
    @property
    def reached(self) -> bool: ...
    @property
    def why(self) -> str:
        """Why it ended, one line; empty while it goes on."""

    @property
    def left_s(self) -> float | None: ...

RuleValues: TypeAlias = tuple[
    Sequence[tuple[int, int]], tuple[int, int, int], tuple[int, Sequence[int]] | None
]

def read_rule_set(text: str) -> tuple[list[RuleValues], int, int]:
    """Rules (bounds of each indicator; m100, b100, tau_us; uses and means) and window changes a second."""

def write_rule_set(rules: Sequence[RuleValues], updates_per_second: int, active_files: int) -> str:
    """The text of a rule file."""

_Recorded: TypeAlias = tuple[
    NDArray[np.float64],
    list[str],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.int64],
    NDArray[np.float64],
]

@final
class Simulation:
    """A simulated cluster; a scenario's and an outcome's JSON is that of `ascar.simulation`."""

    def __new__(cls, scenario: str) -> Simulation: ...
    @property
    def time_s(self) -> float: ...
    @property
    def finished(self) -> bool: ...
    def warm_up(self) -> None: ...
    def step(self) -> None: ...
    def observe(self) -> NDArray[np.float64]: ...
    def set(self, window: NDArray[np.float64], tau_us: NDArray[np.float64]) -> int: ...
    def look_at_servers(self) -> NDArray[np.float64]: ...
    def turn_queues(
        self, slots: list[int], device_depth: list[int], writes_starved: list[int], batch: list[int]
    ) -> int: ...
    def rules(self) -> list[str | None]: ...
    def deploy(self, group: int, rules: str | None) -> int: ...
    def record(self, most: int) -> None: ...
    def recorded(self) -> _Recorded: ...
    def recorded_requests(self) -> _Recorded: ...
    def outcome(self) -> str: ...

@final
class Stream:
    """One client's requests to one server: says when a request may leave, and learns from the replies.

    For each request: `ask` until the answer is at most the present time, `sent` just before it is sent, and
    `replied`, `timed_out` or `cancelled` when it is over. Times are microseconds of a clock that never goes
    back (`time.monotonic_ns() // 1000`). Threads that share a stream read the clock and make their calls
    under one lock. An InputError refuses what does not fit; the stream stays as it was.
    """

    def __new__(cls, window: float = 8.0, pace_us: int = 0) -> Stream:
        """A stream under a fixed window (1 to 256 requests) and a fixed pace (0: none)."""

    def set_fixed(self, window: float, pace_us: int = 0) -> None:
        """Hold it to a fixed window and a fixed pace from now on; what is in flight stays so."""

    def set_rules(
        self, rules: str, *, window: float | None = None, extended: bool = False, seed: int = 0
    ) -> None:
        """Follow congestion rules from now on, given as the text of a rule file; what is in flight stays so.

        Args:
            rules: the text.
            window: the window to begin with; None: as it is now.
            extended: the extended controller even where the rules bound the thesis' indicators only.
            seed: streams of different seeds probe at different times; of the extended controller.
        """

    def set_rival(
        self,
        name: Literal[
            "fixed", "aimd", "cubic", "bbr", "bbr3", "vegas", "gradient2", "envoy", "copa", "iopathtune"
        ],
        seed: int = 0,
        **settings: float,
    ) -> None:
        """Follow a published controller from now on, which begins with its own window.

        Args:
            name: its name.
            seed: streams of different seeds probe at different times.
            settings: latency_us_max (a whole number: process times above it are congestion to aimd, cubic
                and bbr3), aimd_decrease, cubic_decrease, cubic_growth, vegas_alpha, vegas_beta, copa_delta,
                gradient2_queue, gradient2_smoothing, bbr_window_gain, bbr_probe_gain; those of the sources
                where they are not named.
        """

    def ask(self, now_us: int, size_bytes: int) -> int | None:
        """When a request of so many bytes may leave: now if that is at most `now_us`; None: after another.

        It takes its place in window and pace as soon as the window has room, and keeps it when it asks again.
        Asking for another size passes the place on. None: the window is full until a request is over.
        """

    def give_back(self) -> None:
        """The request that has its place is not sent: give the place back, to the one that asks next."""

    def sent(
        self, now_us: int, size_bytes: int, *, offset_bytes: int = 0, file: int = 0, writes: bool = False
    ) -> StreamRequest:
        """The request that may leave now does.

        Args:
            now_us: the present time.
            size_bytes: what it reads or writes, as asked for.
            offset_bytes: where it begins; rules may tell sequential requests by it.
            file: which file, by a number of the caller's.
            writes: whether it writes.
        """

    def replied(self, request: StreamRequest, now_us: int) -> None:
        """Its reply came, of success or of an error."""

    def timed_out(self, request: StreamRequest, now_us: int) -> None:
        """Its reply did not come in time, and is waited for no more."""

    def cancelled(self, request: StreamRequest) -> None:
        """It could not be sent after all, or its connection ended: it says nothing of the server."""

    @property
    def state(self) -> StreamState:
        """Window, pace, what is in flight, indicators."""

    @property
    def rules(self) -> str | None:
        """The text of the rules in force with the use of each; None where no rules decide."""

@final
class StreamRequest:
    """A request that has left, until it is over."""

    @property
    def sent_us(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...

@final
class StreamState:
    """A stream at present, with the indicators of rules; those after `pt_ratio` are 0 unless extended."""

    @property
    def window(self) -> float: ...
    @property
    def pace_us(self) -> int: ...
    @property
    def requests_in_flight(self) -> int:
        """With the one that has its place and has not left."""

    @property
    def bytes_in_flight(self) -> int: ...
    @property
    def replies(self) -> int: ...
    @property
    def timeouts(self) -> int: ...
    @property
    def ack_ewma_us(self) -> int: ...
    @property
    def send_ewma_us(self) -> int: ...
    @property
    def pt_ratio(self) -> float:
        """The last process time over the shortest; 0 before the first reply."""

    @property
    def slow_ack_ewma_us(self) -> int: ...
    @property
    def timeouts_per_1000(self) -> int: ...
    @property
    def writes_per_1000(self) -> int: ...
    @property
    def sequential_per_1000(self) -> int: ...
    @property
    def request_kib(self) -> int: ...

def check_scenario(scenario: str) -> str: ...
def describe_scenario() -> str: ...
def sign_in(path: str, nonce: str) -> tuple[str, str]:
    """The token of a .creds file, and the signature of a server's nonce by its key, as CONNECT has them."""

def normal_below(x: _Numbers) -> _Numbers:
    """P(Z <= x) of the standard normal distribution."""

def normal_below_log(x: _Numbers) -> _Numbers:
    """Its logarithm, exact far into both tails."""

def normal_quantile(p: _Numbers) -> _Numbers:
    """The x with P(Z <= x) = p; NaN outside [0, 1]."""

def mills_ratio(x: _Numbers) -> _Numbers:
    """P(Z > x) over the density at x."""

def student_t_quantile(p: _Numbers, dof: float) -> _Numbers:
    """The x with P(T <= x) = p; NaN outside [0, 1], and where degrees of freedom are not above 0."""

def chi_squared_above(x: _Numbers, dof: float) -> _Numbers:
    """P(X > x); NaN where degrees of freedom are not above 0."""

def chi_squared_quantile_above(p: _Numbers, dof: float) -> _Numbers:
    """The x with P(X > x) = p; NaN outside [0, 1], and where degrees of freedom are not above 0."""

def f_above(x: _Numbers, dof1: _Numbers, dof2: _Numbers) -> _Numbers:
    """P(F > x); NaN where degrees of freedom are not above 0."""

def beta_quantile(p: float, a: float, b: float) -> float:
    """The x with P(X <= x) = p; NaN outside [0, 1], and where a or b is not above 0 and at most 1e10."""

def noncentral_t_below(x: float, dof: float, noncentrality: float) -> float:
    """P(T <= x), to 1e-13; NaN outside 1 to 1e12 degrees of freedom."""

def cholesky_factor(covariance: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """The upper factor U of Uᵀ U, by the upper triangle alone; None: it is not positive definite."""

def cholesky_solve(factor: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """(Uᵀ U)⁻¹ of one right side, (n,)."""

def cholesky_solve_transposed(factor: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """U⁻ᵀ of many right sides, (n, m)."""

def cholesky_solve_and_invert(
    covariance: NDArray[np.float64], right: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]] | None:
    """Half the log of the determinant, and the solution for a right side, (n,); None: not positive definite.

    The upper triangle alone is read; it gives way to that of the inverse, and what is below means nothing.
    """

def minimize_bounded(
    function: Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]],
    start: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    iterations_max: int,
) -> tuple[float, NDArray[np.float64]]:
    """The least value that L-BFGS-B finds, and its place; the function tells a value and its gradient."""
