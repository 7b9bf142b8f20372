"""What benchmarks of servers tell: rates, and the mean, the quantiles and the greatest of their latencies."""

from __future__ import annotations

SHARES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999))
"""The quantiles by name."""
REPORTED = frozenset(
    {"throughput_ops_per_s", "operations", *(f"latency_ms_{name}" for name in ("mean", *dict(SHARES), "max"))}
)
"""The names of their metrics."""
