"""An optimizer behind lines of JSON: random search, or something worse, by the first argument."""

import json
import sys
import time

from ascar.errors import Exhausted
from ascar.optimizers import Evaluation
from ascar.optimizers.random import RandomSearch
from ascar.results.trial import TrialState
from ascar.space import Configuration
from ascar.space.document import space_from_document

manner = sys.argv[1] if len(sys.argv) > 1 else "good"
optimizer, asked, told = None, 0, []
for line in sys.stdin:
    request = json.loads(line)
    answer = {"ok": {}}
    if "start" in request:
        begun = request["start"]
        optimizer = RandomSearch(space_from_document(begun["space"]), seed=begun["seed"])
    elif "tell" in request:
        one = request["tell"]
        told.append(one)
        if one["state"] != "refused":
            optimizer.tell(
                Evaluation(Configuration(one["configuration"]), TrialState(one["state"]), one["loss"])
            )
    else:
        asked += 1
        try:
            answer = {"ok": dict(optimizer.ask()), "reason": f"number {asked}"}
        except Exhausted:
            answer = {"ok": None}
        if manner == "wrong" or (manner == "wrong once" and asked == 1):
            answer = {"ok": {"no_such_parameter": 1}}
        elif manner == "word":
            answer = {"ok": "depth"}
        elif manner == "error":
            answer = {"error": "out of ideas"}
        elif manner == "slow":
            time.sleep(60)
        elif manner == "dies":
            sys.exit(1)
        elif manner == "babbles":
            sys.stdout.write("thinking...\n")
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
