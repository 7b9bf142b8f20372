"""The rule library: rule sets, the features of their workloads, and which new workloads they serve."""
