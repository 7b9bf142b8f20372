"""A study of the online loop to start from: this machine as it is; it watches, and turns nothing yet."""

from __future__ import annotations

from ascar.capes.session.study import CapesSection, KnobSection, OnlineStudySection, ProofSection
from ascar.starter.offline import section

ONLINE = "capes"
"""What `ascar init` takes for it."""

_HEAD = """\
# A session: this machine is tuned while it works.
#
#   ascar capes up THIS_FILE         until ^C; then every knob stands where it stood
#   ascar capes status               in another terminal
#   ascar capes up THIS_FILE --budget 1h --prove      what it gains (mode = "automatic")
#
# "# text" explains; "#key = value" is a key that is left out, with its default or an example.
"""
_METRIC = """\
# What the objective is made from: indicators, * for anything; sum, mean, max or min of them.
# Once the session ran, `ascard agent --config agent.toml --once` in its folder prints all that there are.
# Bytes also count for work that nobody waits for: where you can, take what an application says of itself.
[[capes.metric]]
name = "throughput_bytes_per_s"
indicators = ["block.*.read_bytes_per_s", "block.*.write_bytes_per_s"]
aggregate = "sum"
"""
_KNOBS = """\
[[capes.knob]]
name = "vm.dirty_ratio"
minimum = 2
maximum = 60
step = 2

# A disk's: `ls /sys/block` shows their names.
#[[capes.knob]]
#name = "block.sda.read_ahead_kb"
#minimum = 64
#maximum = 4096
#step = 32
#ratio = true
"""
_RULE = """\
# What must never be set: a formula over knobs (_ for every other sign) and metrics.
[[capes.rule]]
forbid = "vm_dirty_background_ratio >= vm_dirty_ratio"
why = "the kernel would halve it without a word"
"""
_REST = """\
# A file system of its own with a load on it, instead of this machine's: then [[capes.metric]] is not needed,
# and DEV in knobs' names stands for its disk. See examples/capes-localfs.toml.
#[target]
#kind = "localfs"
#[workload]
#kind = "filebench"
#personality = "mailserver"

# A program that turns knobs of its own, by lines of JSON. See examples/capes-application.toml.
#[[capes.program]]
#command = ["./my-control"]
#knobs = ["cache_bytes"]
"""


def online_study_text() -> str:
    """The study file."""
    study = {"name": '"machine"', "objective": '"maximize throughput_bytes_per_s"'}
    tables = ("knob", "program", "metric", "rule", "proof")
    knob = {"name": '"vm.dirty_background_ratio"', "minimum": "1", "maximum": "50", "step": "1"}
    return "\n".join(
        [
            _HEAD,
            section("study", OnlineStudySection, study),
            section("capes", CapesSection, {"mode": '"observe"'}, tables),
            section("[capes.knob]", KnobSection, knob),
            _KNOBS,
            _RULE,
            _METRIC,
            section("capes.proof", ProofSection, {}),
            _REST,
        ]
    )
