"""The paper's step of training in PyTorch, eager: `python torch_step.py INPUTS HIDDEN ACTIONS BATCH CORES`.

For each line on stdin some steps, and their medians in milliseconds, by the clock and of the processor, on
stdout.
"""

import json
import os
import sys
import time
from statistics import median

inputs, hidden, actions, batch, cores = (int(one) for one in sys.argv[1:6])
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])

import torch  # noqa: E402 - it counts the cores that it may use
from torch import nn  # noqa: E402

torch.set_num_threads(cores)
torch.manual_seed(1)


def network() -> nn.Module:
    """Two hidden layers of tanh."""
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, actions)
    )


online, target = network(), network()
target.load_state_dict(online.state_dict())
optimizer = torch.optim.Adam(online.parameters(), lr=1e-4)
states, following = torch.rand(batch, inputs), torch.rand(batch, inputs)
taken, rewards = torch.randint(actions, (batch,)), torch.rand(batch)

for _line in sys.stdin:
    spent, used = [], []
    for _ in range(5):
        begun_s, worked_s = time.perf_counter(), time.process_time()
        with torch.no_grad():
            wanted = rewards + 0.99 * target(following).max(1).values
        values = online(states).gather(1, taken[:, None])[:, 0]
        loss = nn.functional.huber_loss(values, wanted)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(online.parameters(), 5.0)
        optimizer.step()
        with torch.no_grad():
            for follower, leader in zip(target.parameters(), online.parameters(), strict=True):
                follower.lerp_(leader, 0.01)
        loss.item()
        spent.append(time.perf_counter() - begun_s)
        used.append(time.process_time() - worked_s)
    print(json.dumps({"clock_ms": 1e3 * median(spent), "processor_ms": 1e3 * median(used)}), flush=True)
