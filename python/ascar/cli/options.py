"""Every option of every command, once: its name, its type, and the one sentence that says what it does.

Commands take options from here by name, and add nothing but a default. A name with several types has them
because a command needs the value, may do without it, or takes several; the option means the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ascar.results.export_form import EXPORT_FORMS, ExportForm


def _runs(incomplete: str) -> list[str]:
    """Names and ids of the history's runs, for shell completion; silent where there is no history."""
    from ascar.errors import AscarError
    from ascar.history import History

    try:
        with History.existing() as history:
            known = {text for run in history.runs() for text in (run.name, str(run.id))}
    except AscarError:
        return []
    return sorted(text for text in known if text.startswith(incomplete))


def _option(name: str, short: str | None, metavar: str | None, sentence: str, **bounds: Any) -> Any:
    names = [name] if short is None else [name, short]
    return typer.Option(*names, metavar=metavar, help=sentence, **bounds)


# What comes out, and how.
_JSON = _option(
    "--json", None, None, "Print one JSON document on standard output; `ascar schema` prints its schema."
)
Json = Annotated[bool, _JSON]
_QUIET = _option("--quiet", "-q", None, "Show no progress.")
Quiet = Annotated[bool, _QUIET]
_OUT = _option("--out", "-o", "PATH", "Write the result to this path.")
Out = Annotated[Path, _OUT]
OutOrNone = Annotated[Path | None, _OUT]
_RESULTS = _option(
    "--results",
    None,
    "DIR",
    "Keep the raw results of every run in this folder, and continue from them later.",
)
Results = Annotated[Path | None, _RESULTS]
_FORCE = _option("--force", None, None, "Replace an existing file or result.")
Force = Annotated[bool, _FORCE]
_EXPORT = _option("--export", None, "FILE", "Write the result as a table: .csv or .md (Markdown).")
Export = Annotated[Path | None, _EXPORT]
_READINGS = _option("--readings", None, "FILE", "Write every reading, one JSON object a line: .jsonl.")
Readings = Annotated[Path | None, _READINGS]
_UNIT_READINGS = _option(
    "--unit-readings/--no-unit-readings",
    None,
    None,
    "Include the unit readings, which take most of the space.",
)
UnitReadings = Annotated[bool, _UNIT_READINGS]
_PLOT = _option("--plot", None, "FILE", "Draw the result into this file: .svg or .png.")
Plot = Annotated[Path | None, _PLOT]
_PLOTS = _option("--plots", None, "DIR", "Draw the result into this folder.")
Plots = Annotated[Path | None, _PLOTS]
_PLOT_FORMAT = _option("--plot-format", None, "svg|png", "Choose the format of the plots.")
PlotFormat = Annotated[str, _PLOT_FORMAT]
_FORM_AS = _option(
    "--as",
    None,
    "FORM",
    f"Choose the form of what is printed: {', '.join(EXPORT_FORMS[:-1])} or {EXPORT_FORMS[-1]}.",
)
As = Annotated[ExportForm, _FORM_AS]
_STRACE = _option(
    "--strace", None, "FILE", "Keep strace's text of the recorded process or command in this file."
)
Strace = Annotated[Path | None, _STRACE]
_TOP = _option("--top", None, "N", "Show this many of the best trials.", min=0)
Top = Annotated[int, _TOP]

# How long, how often, at what level.
_BUDGET = _option(
    "--budget",
    None,
    "DURATION",
    "End after this time and keep the results, e.g. '10 min'; a simulated system counts its own time.",
)
Budget = Annotated[str, _BUDGET]
BudgetOrNone = Annotated[str | None, _BUDGET]
_DURATION = _option("--duration", None, "DURATION", "Simulate or record for this duration.")
Duration = Annotated[str, _DURATION]
DurationOrNone = Annotated[str | None, _DURATION]
_ROUND_LIMIT = _option(
    "--round-limit", None, "DURATION", "Kill a round that runs longer, and count it as failed."
)
RoundLimit = Annotated[str | None, _ROUND_LIMIT]
_SHORT_ROUND = _option(
    "--short-round",
    None,
    "DURATION",
    "Do not count rounds shorter than this, and double the work of the next round.",
)
ShortRound = Annotated[str | None, _SHORT_ROUND]
_ROUNDS_MAX = _option("--rounds-max", None, "N", "Run no more rounds than this, of each command.", min=1)
RoundsMax = Annotated[int, _ROUNDS_MAX]
_WARM_UP = _option(
    "--warm-up", None, "N", "Run this many rounds of each command first, which do not count.", min=0
)
WarmUp = Annotated[int, _WARM_UP]
_SETTLE = _option("--settle", None, "DURATION", "Do not count this time after every change of settings.")
Settle = Annotated[str, _SETTLE]
_PHASE = _option("--phase", None, "DURATION", "Make each phase of the comparison this long.")
Phase = Annotated[str, _PHASE]
_RUN = _option("--run", None, "DURATION", "Make a workload of this duration.")
RunLength = Annotated[str, _RUN]
_EVERY = _option("--every", None, "DURATION", "Give the time between readings if no column has it.")
Every = Annotated[str | None, _EVERY]
_ONLINE = _option("--online", None, None, "Write a study that `ascar capes up` can run, too.")
Online = Annotated[bool, _ONLINE]
_CONNECT = _option("--connect", None, "SOCKET", "Reach the system of a session by this socket.")
Connect = Annotated[Path | None, _CONNECT]
_SAMPLE_EVERY = _option(
    "--sample-every", None, "DURATION", "Print what the system tells of itself, this often."
)
SampleEvery = Annotated[str | None, _SAMPLE_EVERY]
_PERIOD = _option(
    "--period", None, "DURATION", "Give the period of the readings' pattern; none means no pattern."
)
Period = Annotated[str, _PERIOD]
_BATCH = _option(
    "--batch", None, "DURATION", "Average readings over this time, which must divide the period."
)
Batch = Annotated[str, _BATCH]
_FALSE_ALARM = _option(
    "--false-alarm", None, "DURATION", "Raise no more than one false alarm in this time, on average."
)
FalseAlarm = Annotated[str, _FALSE_ALARM]
_OBSERVE = _option("--observe", None, "DURATION", "Observe the features of the load for this time.")
Observe = Annotated[str, _OBSERVE]
_CONFIDENCE = _option(
    "--confidence", None, "LEVEL", "Set the confidence level of intervals and verdicts, e.g. 0.95."
)
Confidence = Annotated[float, _CONFIDENCE]
ConfidenceOrNone = Annotated[float | None, _CONFIDENCE]
_PRESET = _option(
    "--preset",
    None,
    "NAME",
    "Say how good the result must be: quick, normal or strict; their figures are above.",
)
Preset = Annotated[str, _PRESET]
_INTERVAL_WIDTH = _option(
    "--interval-width", None, "SHARE", "Set the width of the interval over the mean, instead of the preset's."
)
IntervalWidth = Annotated[float | None, _INTERVAL_WIDTH]
_GOAL = _option(
    "--goal",
    None,
    "NAME:WIDTH[:LEVEL]",
    "Set the width of this metric's interval over its mean, e.g. latency_ms_p99:10%, and "
    "its confidence level.",
)
Goals = Annotated[list[str] | None, _GOAL]
_READINGS_MIN = _option(
    "--readings-min",
    None,
    "N",
    "Use at least this many readings of the stable phase, instead of the preset's number.",
    min=1,
)
ReadingsMin = Annotated[int | None, _READINGS_MIN]
_ROUNDS_MIN = _option(
    "--rounds-min", None, "N", "Run at least this many rounds, instead of the preset's number.", min=1
)
RoundsMin = Annotated[int | None, _ROUNDS_MIN]
_MARGIN = _option(
    "--margin", None, "SHARE", "Set the difference that does not matter, instead of the preset's, e.g. 2%."
)
Margin = Annotated[str | None, _MARGIN]
_AUTOCORRELATION_LIMIT = _option(
    "--autocorrelation-limit",
    None,
    "LIMIT",
    "Merge subsessions until their autocorrelation is below this limit, between 0 and 1.",
)
AutocorrelationLimit = Annotated[float, _AUTOCORRELATION_LIMIT]
_METHOD = _option(
    "--method",
    None,
    "NAME",
    "Choose how the interval is computed: corrected allows for correlation; faithful is "
    "the published subsession rule, which covers less than it promises.",
)
Method = Annotated[str, _METHOD]
_RUNS = _option("--runs", None, "N", "Make this many runs, each with its own seed.", min=1, max=1_000_000)
Runs = Annotated[int, _RUNS]
RunsOrNone = Annotated[int | None, _RUNS]
_FIRST_RUNS = _option(
    "--first-runs",
    None,
    "N",
    "Use only this many first runs of each configuration, so that ranges are comparable.",
    min=2,
)
FirstRuns = Annotated[int | None, _FIRST_RUNS]
_EVALUATIONS = _option(
    "--evaluations", None, "N", "Make at most this many evaluations in each search.", min=1, max=1_000_000
)
Evaluations = Annotated[int, _EVALUATIONS]
EvaluationsOrNone = Annotated[int | None, _EVALUATIONS]
_ACTIVE_FILES = _option(
    "--active-files",
    None,
    "N,...",
    "Try also to let only N files of a stream have requests in flight at once, in turns, for each N.",
)
ActiveFiles = Annotated[str | None, _ACTIVE_FILES]
_CLIENT_GROUP = _option(
    "--client-group",
    None,
    "N",
    "Make rules for the clients of this group of the scenario alone, counted from 1.",
    min=1,
)
ClientGroup = Annotated[int | None, _CLIENT_GROUP]
_METADATA = _option(
    "--metadata",
    None,
    None,
    "The rules are those of each client's stream of metadata operations, and so is the throughput.",
)
Metadata = Annotated[bool, _METADATA]
_GROUP_RULES = _option(
    "--group-rules",
    None,
    "N=FILE",
    "Let the clients of this group of the scenario follow these rules already.",
)
GroupRules = Annotated[list[str] | None, _GROUP_RULES]
_PAIRS = _option("--pairs", None, "N", "Compare by at most this many pairs of runs.", min=1, max=1_000)
Pairs = Annotated[int, _PAIRS]
_REAL_RUNS = _option(
    "--real-runs", None, "N", "Make at most this many runs on a testbed, from 6 to 40; default: 40."
)
RealRunsOrNone = Annotated[int | None, _REAL_RUNS]
_PATIENCE = _option("--patience", None, "N", "End after this many epochs without gain; 0: never.", min=0)
Patience = Annotated[int | None, _PATIENCE]
_SEED = _option("--seed", None, "N", "Seed the random numbers; equal seeds give equal numbers.", min=0)
Seed = Annotated[int, _SEED]
SeedOrNone = Annotated[int | None, _SEED]
_THREADS = _option(
    "--threads",
    None,
    "N",
    "Run this many simulations at a time; default: one for each core.",
    min=1,
    max=1024,
)
Threads = Annotated[int | None, _THREADS]
_WORKERS = _option(
    "--workers",
    None,
    "N",
    "Use this many processes; 0 uses only this one. Default: one for each core.",
    min=0,
    max=1024,
)
Workers = Annotated[int | None, _WORKERS]
_REPLICATES = _option(
    "--replicates", None, "N", "Measure each configuration this often; 0: the subset alone.", min=0, max=1000
)
Replicates = Annotated[int, _REPLICATES]
_SUBSET = _option(
    "--subset",
    None,
    "N",
    "Measure this many configurations, a Latin hypercube sample, more often than the others.",
    min=0,
)
Subset = Annotated[int, _SUBSET]
_SUBSET_REPLICATES = _option(
    "--subset-replicates",
    None,
    "N",
    "Measure each configuration of the subset this often, in all.",
    min=0,
    max=1000,
)
SubsetReplicates = Annotated[int, _SUBSET_REPLICATES]
_PART = _option(
    "--part", None, "K/N", "Do the K-th of N parts of the work, to share it among processes or machines."
)
Part = Annotated[str, _PART]
_SAMPLES = _option(
    "--samples", None, "N", "Use only this many rows, chosen evenly over every parameter.", min=2
)
Samples = Annotated[int | None, _SAMPLES]

# Going on, ending, being sure.
_RESUME = _option("--resume", None, None, "Continue the latest interrupted work; completed parts count.")
Resume = Annotated[bool, _RESUME]
_FOLLOW = _option("--follow", "-f", None, "Continue with new readings until interrupted.")
Follow = Annotated[bool, _FOLLOW]
_ONCE = _option("--once", None, None, "Print the state once and end.")
Once = Annotated[bool, _ONCE]
_DETACH = _option("--detach", None, None, "Return when the session runs, and let it continue.")
Detach = Annotated[bool, _DETACH]
_KEEP = _option("--keep", None, None, "Keep the best setting in force after the end, until `ascar restore`.")
Keep = Annotated[bool, _KEEP]
_KEEP_APPLIED = _option("--keep-applied", None, None, "Leave in force what `ascar apply` put in force.")
KeepApplied = Annotated[bool, _KEEP_APPLIED]
_CONFIRM_WITHIN = _option(
    "--confirm",
    None,
    "DURATION",
    "Put everything back after this time, unless `ascar confirm` comes first, e.g. '10 min'.",
)
ConfirmWithin = Annotated[str | None, _CONFIRM_WITHIN]
_CANARY = _option(
    "--canary",
    None,
    "DURATION",
    "Watch the [guard] of each server for this long, and put all servers back if a limit is broken; --server "
    "may be given again for the next server, and --allow-live with it.",
)
CanaryTime = Annotated[str | None, _CANARY]
_MEASURE = _option(
    "--measure", None, None, "Compare with the default again, in turns: the study's load runs."
)
Measure = Annotated[bool, _MEASURE]
_DRY_RUN = _option("--dry-run", None, None, "Print the commands that would run, and run nothing.")
DryRun = Annotated[bool, _DRY_RUN]
_CHECK = _option("--check", None, None, "Only check the file.")
Check = Annotated[bool, _CHECK]
_YES = _option("--yes", "-y", None, "Do not ask.")
Yes = Annotated[bool, _YES]
_PROVE = _option(
    "--prove", None, None, "Compare phases with and without tuning in turns, and report the gain."
)
Prove = Annotated[bool, _PROVE]
_FORMAT_DEVICE = _option(
    "--format-device",
    None,
    "DEVICE",
    "Confirm that this block device, which the study names, may be formatted. May be given again.",
)
FormatDevices = Annotated[list[str] | None, _FORMAT_DEVICE]
_ALLOW_LIVE = _option(
    "--allow-live",
    None,
    "NAME",
    "Confirm that this server, which people use and the study names, may be tuned.",
)
AllowLive = Annotated[str | None, _ALLOW_LIVE]
AllowLives = Annotated[list[str] | None, _ALLOW_LIVE]
_WHY = _option("--why", None, "TEXT", "Give the reason, for the audit log.")
Why = Annotated[str, _WHY]

# Tables and recorded readings.
_TABLE = _option("--table", None, "FILE", "Read a table of measurements: CSV, Parquet, or dataset:NAME.")
TableFile = Annotated[Path | None, _TABLE]
TableFiles = Annotated[list[Path] | None, _TABLE]
_OBJECTIVE = _option(
    "--objective",
    None,
    "OBJECTIVE",
    "Say what is optimized: a table's column, 'maximize FORMULA' or 'minimize FORMULA' "
    "over metrics, or for rules a form of the thesis' section 3.1.5, e.g. tp-stdev:1.",
)
ObjectiveText = Annotated[str, _OBJECTIVE]
ObjectiveTextOrNone = Annotated[str | None, _OBJECTIVE]
ObjectiveTexts = Annotated[list[str] | None, _OBJECTIVE]
_CONSTRAINT = _option(
    "--constraint",
    None,
    "METRIC>=NUMBER",
    "Set what rules must keep, e.g. 'jain_index >= 0.9', or none; default: group_share_min >= 0.9.",
)
ConstraintTexts = Annotated[list[str] | None, _CONSTRAINT]
_DIRECTION = _option(
    "--direction",
    None,
    "min|max",
    "Say whether less or more is better; default: what the metric's name implies.",
)
Direction = Annotated[str | None, _DIRECTION]
_PARAMETERS = _option(
    "--parameters", None, "A,B", "Name the columns that are parameters; default: all others."
)
Parameters = Annotated[str | None, _PARAMETERS]
_METRICS = _option("--metrics", None, "A,B", "Name the table's other columns that were measured.")
Metrics = Annotated[str | None, _METRICS]
_IGNORE = _option("--ignore", None, "A,B", "Name columns to leave out.")
Ignore = Annotated[str | None, _IGNORE]
_DURATION_COLUMN = _option(
    "--duration-column",
    None,
    "COLUMN",
    "Name the column with the duration of each evaluation, for plots over time.",
)
DurationColumn = Annotated[str | None, _DURATION_COLUMN]
_ORDER = _option("--order", None, "COLUMN", "Name the column with the time of each run: a number or a date.")
Order = Annotated[str | None, _ORDER]
_SETUP = _option("--setup", None, "COLUMN", "Name the column with the set-up (format, image) of each run.")
Setup = Annotated[str | None, _SETUP]
_COLUMN = _option(
    "--column",
    None,
    "NAME",
    "Name the column or key with the readings: for fio's logs read, write or trim, for its"
    " JSON e.g. read.iops, for hyperfine the command.",
)
Column = Annotated[str | None, _COLUMN]
_TIME = _option(
    "--time", None, "NAME", "Name the column or key with the time of each reading: seconds, or ISO 8601."
)
Time = Annotated[str | None, _TIME]
_COMBINE = _option(
    "--combine", None, "HOW", "Bring several nodes' readings together: sum (throughput) or mean (latency)."
)
Combine = Annotated[str | None, _COMBINE]
_SERIES = _option("--series", None, "NAME", "Name the recorded series that is the throughput over time.")
Series = Annotated[str | None, _SERIES]
_BY = _option(
    "--by",
    None,
    "PARAMETER",
    "Group by this parameter; default: the one with the most significant effect, if any.",
)
By = Annotated[str | None, _BY]
_AVERAGING = _option(
    "--averaging",
    None,
    "SECONDS",
    "Average throughput over windows of this many seconds (Throughput-S).",
    min=0.001,
)
Averaging = Annotated[list[float] | None, _AVERAGING]
_TOLERANCE = _option(
    "--tolerance",
    None,
    "PERCENT",
    "Count a run as settled when it is this close to its end.",
    min=0.01,
    max=100,
)
Tolerance = Annotated[float, _TOLERANCE]
_RSD = _option(
    "--rsd",
    None,
    "PERCENT",
    "Choose parameters until configurations vary by no more than this.",
    min=0,
    max=100,
)
Rsd = Annotated[float, _RSD]
_ACROSS = _option(
    "--across",
    None,
    "max|mean",
    "Take the greatest conditional importance over the values of other parameters (published), or the mean.",
)
Across = Annotated[str, _ACROSS]

# Commands that are measured.
_METRIC = _option(
    "--metric",
    None,
    "NAME=REGEX|NAME=json:PATH",
    "Read this number from the command's output; several in a run are unit readings. The "
    "default is how long the command runs, duration_s.",
)
Metric = Annotated[str | None, _METRIC]
MetricList = Annotated[list[str] | None, _METRIC]
_KIND = _option(
    "--kind",
    None,
    "NAME=KIND",
    "Say how a metric is averaged: ordinary; ratio (speeds over equal work: harmonic mean); binary (0 or 1).",
)
Kinds = Annotated[list[str] | None, _KIND]
_REPORT_ONLY = _option(
    "--report-only", None, "NAME", "Report this metric, or duration_s, without letting it decide."
)
ReportOnly = Annotated[list[str] | None, _REPORT_ONLY]
_SOURCE = _option(
    "--source",
    None,
    "NAME[@NODE]=COMMAND",
    "Run this command in each round, on this node, at the same time as the other sources; "
    "its metrics are NAME.METRIC.",
)
Sources = Annotated[list[str] | None, _SOURCE]
_NODES = _option(
    "--nodes",
    None,
    "FILE.toml",
    "Read the [[node]] tables of this file or study; else NODE is a host for ssh.",
)
NodesFile = Annotated[Path | None, _NODES]
_WORK_AMOUNT = _option(
    "--work-amount",
    None,
    "MIN,MAX",
    "Vary the work amount, which the command takes in place of %WORK_AMOUNT%: rounds of "
    "different work amounts tell the stable speed apart from set-up, warm-up and cool-"
    "down.",
)
WorkAmount = Annotated[str | None, _WORK_AMOUNT]
_LABEL = _option(
    "--label", None, "LABEL", "Label a command or file; give one label for each, in their order."
)
Labels = Annotated[list[str] | None, _LABEL]

# Systems, studies and runs.
_TRIAL = _option("--trial", None, "NUMBER", "Choose this trial.")
TrialNumber = Annotated[int | None, _TRIAL]
_CONFIGURATION = _option(
    "--configuration", None, "FILE", "Use the configuration in a file that `ascar explore` saved."
)
ConfigurationFile = Annotated[Path | None, _CONFIGURATION]
_AGAINST = _option(
    "--against", None, "default|TRIAL", "Compare with the default, or with this trial of the run."
)
Against = Annotated[str, _AGAINST]
_DEVICE = _option("--device", None, "DEVICE", "Set the queue of this block device.")
Device = Annotated[str | None, _DEVICE]
_MOUNTPOINT = _option("--mountpoint", None, "DIR", "Set the options of this mounted file system.")
Mountpoint = Annotated[Path | None, _MOUNTPOINT]
_SERVER = _option(
    "--server",
    None,
    "STUDY.toml",
    "Mean the server in the [target] table of this study file, instead of that of the run.",
)
ServerFile = Annotated[Path | None, _SERVER]
ServerFiles = Annotated[list[Path] | None, _SERVER]
_ALL = _option("--all", None, None, "Export all runs.")
All = Annotated[bool, _ALL]
_HOST = _option("--host", None, "ADDRESS", "Listen at this address.")
Host = Annotated[str, _HOST]
_PORT = _option("--port", None, "PORT", "Listen at this port; 0: any that is free.", min=0, max=65535)
Port = Annotated[int, _PORT]
_OPEN = _option("--open/--no-open", None, None, "Open the page in a browser.")
Open = Annotated[bool, _OPEN]

# Optimizers judged on tables.
_NOISE = _option(
    "--noise",
    None,
    "KIND",
    "Add noise: replicates (default: a row of the configuration at random), gaussian:RELATIVE_SD, or none.",
)
Noise = Annotated[str | None, _NOISE]
_RESTRICT = _option(
    "--restrict",
    None,
    "A=V,B",
    "Also run searches that fix these parameters, at a given value or that of the first row.",
)
Restrict = Annotated[str | None, _RESTRICT]
_START = _option(
    "--start",
    None,
    "A=V,B=W",
    "Start from this configuration; annealing, dqn and random use the first one given.",
)
Starts = Annotated[list[str] | None, _START]
_BENCHMARK = _option(
    "--benchmark",
    None,
    "FILE.toml",
    "Read tables, synthetic systems, checkpoints, runs and noise from this file.",
)
Benchmark = Annotated[Path | None, _BENCHMARK]
_TABLES = _option(
    "--tables",
    None,
    "DIR",
    "Look for the benchmark's tables in this folder; default: the benchmark's folder.",
)
TablesFolder = Annotated[Path | None, _TABLES]
_PROBLEMS = _option("--problems", None, "A,B", "Run only these of the benchmark's problems; default: all.")
Problems = Annotated[str | None, _PROBLEMS]
_OPTIMIZERS = _option("--optimizers", None, "A,B", "Judge these optimizers, of other packages too.")
Optimizers = Annotated[str, _OPTIMIZERS]
_SWEEP = _option(
    "--sweep", None, "KIND.OPTION=V,W", "Judge variants of an optimizer that differ in one option."
)
Variants = Annotated[list[str] | None, _SWEEP]
_CHECKPOINTS = _option(
    "--checkpoints", None, "N,M", "Judge after these numbers of evaluations; default: 25,50,100."
)
Checkpoints = Annotated[str | None, _CHECKPOINTS]

# Simulated systems.
_SCENARIO = _option(
    "--scenario",
    None,
    "SCENARIO",
    "Run this scenario under the rules, to count their use; a file or a preset.",
)
ScenarioOrNone = Annotated[str | None, _SCENARIO]
_SET = _option("--set", None, "KEY=VALUE", "Change a key of the scenario, e.g. clients.count=10.")
ScenarioSettings = Annotated[list[str] | None, _SET]
_ALSO = _option(
    "--also",
    None,
    "KEY=VALUE",
    "Repeat each run with this change of the scenario, and use the mean over all variants.",
)
Also = Annotated[list[str] | None, _ALSO]
_FIRST_IN = _option(
    "--first-in", None, "SCENARIO", "Search in this scenario first, and start from its best rules."
)
FirstIn = Annotated[str | None, _FIRST_IN]
_WINDOW = _option("--window", None, "N", "Set the initial number of requests in flight of a stream.")
Window = Annotated[float | None, _WINDOW]
_TAU_US = _option("--tau-us", None, "MICROSECONDS", "Set the initial gap between a stream's requests.")
TauUs = Annotated[float | None, _TAU_US]
_ARRIVALS = _option(
    "--arrivals",
    None,
    "SHARE",
    "Let work arrive at this share of the capacity, e.g. 0.9, whether or not the work before has ended.",
)
Arrivals = Annotated[float | None, _ARRIVALS]
_WINDOWS = _option("--windows", None, "N,M", "Try these windows: the requests that a stream keeps in flight.")
Windows = Annotated[str, _WINDOWS]
_TAUS_US = _option(
    "--taus-us", None, "N,M", "Try these least gaps between a stream's requests, in microseconds."
)
TausUs = Annotated[str, _TAUS_US]
_FIGURE = _option("--figure", None, "NAME", "Compare this figure, e.g. throughput_while_active_mb_per_s.")
Figure = Annotated[str, _FIGURE]
_STREAMS = _option("--streams", None, None, "Record a series for each stream (a client with a server).")
Streams = Annotated[bool, _STREAMS]
_STREAM = _option("--stream", None, "N", "Draw the course of this stream.", min=0)
Stream = Annotated[int, _STREAM]
_SPEED = _option(
    "--speed", None, "X", "Simulate this many virtual seconds in a second, as far as the machine can."
)
Speed = Annotated[float, _SPEED]
_PREFIX = _option("--prefix", None, "NAME", "Call the controllers NAME-0, NAME-1, and so on.")
Prefix = Annotated[str, _PREFIX]

_MATCH = _option(
    "--match", None, "TEXT", "Show only entries that have this text in their name or description."
)
Match = Annotated[str | None, _MATCH]

# Rules of congestion control.
_RULES = _option(
    "--rules", None, "RULESET", "Use this rule set: a file, or the name of one that comes with ascar."
)
RulesOrNone = Annotated[Path | None, _RULES]
_CONTROLLERS = _option(
    "--controllers",
    None,
    "A,B",
    "Compare with these controllers: aimd, cubic, bbr, bbr3, vegas, gradient2, envoy-gradient, "
    "copa, io-path-tune; default: all.",
)
Controllers = Annotated[str | None, _CONTROLLERS]
_TUNE = _option(
    "--tune",
    None,
    "RUNS",
    "Also compare with the best static setting and with tuned controllers, each tuned with this many runs.",
    min=2,
)
TuneRuns = Annotated[int | None, _TUNE]
_RULE_SET = _option(
    "--rule-set", None, "ID", "Predict only for this rule set of the library, named by the start of its id."
)
RuleSetId = Annotated[str | None, _RULE_SET]
_RULE = _option(
    "--rule",
    None,
    "N",
    "Use only this rule, counted from 1; default: all rules, or the most used one to vary or split.",
    min=1,
)
OneRule = Annotated[int | None, _RULE]
OnlyRules = Annotated[list[int] | None, _RULE]
_ALONG = _option("--along", None, "A,B", "Split rules along these indicators.")
Along = Annotated[str, _ALONG]
AlongOrNone = Annotated[str | None, _ALONG]
_FIELDS = _option("--fields", None, "A,B", "Tune these numbers of the rules: m100, b100, tau_us.")
Fields = Annotated[str, _FIELDS]
_SCHEDULE = _option(
    "--schedule", None, "sharp|faithful|remy", "Choose how to search; faithful is algorithm 1 to the letter."
)
Schedule = Annotated[str, _SCHEDULE]
_FAITHFUL = _option(
    "--faithful", None, None, "Number candidates as the published search does: the first is 11."
)
Faithful = Annotated[bool, _FAITHFUL]
_WORKLOAD = _option("--workload", None, "NAME", "Use only the controllers whose client runs this workload.")
Workload = Annotated[str, _WORKLOAD]
WorkloadOrNone = Annotated[str | None, _WORKLOAD]
_CONNECTION = _option(
    "--connection",
    None,
    "FILE",
    "Reach the message server by this connection file; default: ASCAR_NATS_URL and "
    "ASCAR_NATS_CREDENTIALS, or this machine's server.",
)
Connection = Annotated[Path | None, _CONNECTION]
_LEAST = _option("--least", None, "N", "Wait until at least this many controllers answer.", min=1)
Least = Annotated[int, _LEAST]
_FLOOR = _option(
    "--floor",
    None,
    "SHARE",
    "Refuse rules that bring the throughput below this share of that before, e.g. 80%; 0% does not look.",
)
Floor = Annotated[str, _FLOOR]
_REHEARSE = _option(
    "--rehearse", None, "SCENARIO", "Refuse rules that lose throughput, or starve a group, in this scenario."
)
Rehearse = Annotated[str | None, _REHEARSE]
_BACK_AFTER = _option(
    "--back-after",
    None,
    "DURATION",
    "Put back what was in force after this time, an hour at most, e.g. '30 min'.",
)
BackAfter = Annotated[str | None, _BACK_AFTER]
_KEEP_FOR = _option(
    "--keep-for",
    None,
    "DURATION",
    "Put no rules in force after this time limit, 365 days at most, e.g. '7 d'; default: they stay.",
)
KeepFor = Annotated[str | None, _KEEP_FOR]
_FORGET = _option("--forget", None, None, "Do not wait for controllers that took rules before and are gone.")
Forget = Annotated[bool, _FORGET]
_LIBRARY = _option(
    "--library",
    None,
    "FILE",
    "Use this library; default: $ASCAR_LIBRARY, or the one in the state directory.",
)
LibraryFile = Annotated[Path | None, _LIBRARY]
_NAME = _option(
    "--name", None, "NAME", "Call the workload this in the library; default: the scenario's or file's name."
)
Name = Annotated[str | None, _NAME]
_GAIN = _option(
    "--gain",
    None,
    "SHARE",
    "Give the gain of the rules on the workload, e.g. 0.12; for a scenario it is measured.",
)
Gain = Annotated[float | None, _GAIN]
_CAUTION = _option(
    "--caution",
    None,
    "SDS",
    "Recommend rules only if their expected gain minus this many standard deviations is positive.",
    min=0,
)
Caution = Annotated[float, _CAUTION]
_CHECK_SHARE = _option(
    "--check-share",
    None,
    "SHARE",
    "Do without rules that are kept for this share of the time, to check that they still help.",
)
CheckShare = Annotated[str, _CHECK_SHARE]
_MOVED = _option(
    "--moved",
    None,
    "DISTANCE",
    "Treat a workload as a new one from this distance of features on.",
    min=0.01,
    max=1,
)
Moved = Annotated[float, _MOVED]
_ALTERED = _option("--altered", None, "N", "Try all rules on this many altered workloads.", min=0, max=10_000)
Altered = Annotated[int, _ALTERED]
_ONLY = _option("--only", None, "NAME", "Do only this one of the common workloads.")
Only = Annotated[list[str] | None, _ONLY]

# Learning while a system works.
_SESSION = _option(
    "--session", None, "SESSION", "Choose a session of `ascar capes up` by its name or folder."
)
Session = Annotated[str | None, _SESSION]
_FOLDER = _option("--folder", None, "DIR", "Keep the session's data, logs and learned state in this folder.")
Folder = Annotated[Path | None, _FOLDER]
_JOB = _option("--job", None, "ID", "Name the scheduler's job of the workload.")
Job = Annotated[str, _JOB]
_WAIT = _option(
    "--wait",
    None,
    "SECONDS",
    "With `kill`: wait this long until every node has confirmed that its knobs are back.",
    min=0,
    max=86400,
)
Wait = Annotated[float, _WAIT]
_CONFIG = _option("--config", None, "FILE", "Read the learner's options from this file, in TOML.")
Config = Annotated[Path, _CONFIG]
_ONLY_HISTORY = _option(
    "--only-history", None, None, "Learn from stored ticks, save the state and end, without setting any knob."
)
OnlyHistory = Annotated[bool, _ONLY_HISTORY]
_STEPS = _option(
    "--steps",
    None,
    "N",
    "Train the classic learner for this many steps on stored ticks; default: one step for each tick.",
    min=1,
    max=10**9,
)
Steps = Annotated[int | None, _STEPS]
_HISTORY = _option("--history", None, "SESSION", "Learn from this session's stored ticks first.")
Histories = Annotated[list[str] | None, _HISTORY]
_ALGORITHM = _option(
    "--algorithm", None, "NAME", "Choose the learner: modern, classic (DQN), sweep or random."
)
Algorithm = Annotated[str, _ALGORITHM]
_ALGORITHMS = _option(
    "--algorithms",
    None,
    "A,B",
    "Choose the learners; the first is compared with each of the others.",
)
Algorithms = Annotated[str, _ALGORITHMS]
_GAME = _option(
    "--game",
    None,
    "hard|thesis",
    "Choose the game: hard has a random peak and start, and requires the learner to stay at the peak; "
    "thesis has its peak at 50, and requires more than 20 ticks near it.",
)
Game = Annotated[str, _GAME]
_NOISE_SD = _option(
    "--noise-sd", None, "SHARE", "Add noise of this standard deviation to the throughput, as 0.1 or 10%."
)
NoiseSd = Annotated[str, _NOISE_SD]
_DELAY = _option("--delay", None, "N", "Delay the effect of a change by this many ticks.")
Delay = Annotated[int, _DELAY]

# Testbeds.
_TESTBED = _option(
    "--testbed", None, "TESTBED", "Choose a testbed by its name or file; default: the only one that is up."
)
OfTestbed = Annotated[str | None, _TESTBED]

# Traces of loads.
_FORM = _option(
    "--form",
    None,
    "FORM",
    "Name the format of the trace: blkparse; kernel (perf script, trace-cmd, bpftrace: block "
    "events); msr (CSV); mqsim; strace; load (ascard load --record). Default: as its "
    "content says.",
)
TraceForm = Annotated[str | None, _FORM]
_PID = _option("--pid", None, "PID", "Record this process.")
Pid = Annotated[int | None, _PID]
_TRACE = _option("--trace", None, "FILE", "Read this block trace, or this earlier record.")
TraceFile = Annotated[Path | None, _TRACE]
_UNDER = _option("--under", None, "DIR", "Count only files below this folder.")
Under = Annotated[Path | None, _UNDER]
_SIZE_MAX = _option(
    "--size-max", None, "SIZE", "Limit the size of each file set; longer jumps are shortened to fit."
)
SizeMax = Annotated[str, _SIZE_MAX]
_REPLAY_IN = _option(
    "--replay-in", None, "DIR", "Replay the workload in this folder, in files of its own, and compare."
)
ReplayIn = Annotated[Path | None, _REPLAY_IN]

# Arguments.
StudyFile = Annotated[
    Path, typer.Argument(metavar="STUDY.toml", help="A study file; `ascar init` writes one.")
]
StudyOrRun = Annotated[
    str,
    typer.Argument(
        metavar="STUDY|RUN",
        help="A study's name or file (its latest run), or a run's number; `ascar history ls` lists them.",
        autocompletion=_runs,
    ),
]
OneSession = Annotated[
    str | None,
    typer.Argument(
        metavar="[SESSION]",
        help="The session's name or folder; default: the session that runs on this machine.",
    ),
]
RuleFile = Annotated[
    Path,
    typer.Argument(
        metavar="RULESET",
        help="A rule file with statistics, or the name of one that comes with ascar; - reads standard input.",
    ),
]
ScenarioName = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A scenario file (.toml), or the name of a preset.")
]
ScenarioOrTestbedOrLive = Annotated[
    str | None,
    typer.Argument(
        metavar="[SCENARIO]",
        help="A scenario file (.toml) or the name of a preset; or a testbed file (.toml); without one: the "
        "live controllers.",
    ),
]
LibraryWorkload = Annotated[
    str,
    typer.Argument(
        metavar="WORKLOAD",
        help="A scenario (a .toml file, or a preset's name), a trace, or lib:NAME, one of the library.",
    ),
]
TestbedFilePath = Annotated[
    Path, typer.Argument(metavar="FILE.toml", help="A testbed file: nodes, disks, proxies and links.")
]
OneTestbed = Annotated[
    str | None,
    typer.Argument(metavar="[TESTBED]", help="A testbed's name or file; default: the only one that is up."),
]
NodeOfTestbed = Annotated[str, typer.Argument(metavar="NODE", help="The name of a node of the testbed.")]
