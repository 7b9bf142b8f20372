"""A session of daemons: whether a node is there, and a knob that is set through the interface."""


def has_node(message, node="node1"):
    return node in message["nodes"]


def set_knob(bus, value, number=1):
    verdict = bus.ask("actions", {"id": f"a-{number}", "set": {"vm.page-cluster": value}})
    assert verdict["verdict"] == "accepted", verdict
    ends = ("applied", "failed")
    return bus.json("outcomes", lambda it: it["id"] == f"a-{number}" and it["verdict"] in ends)
