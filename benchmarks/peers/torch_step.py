"""The paper's step of training in PyTorch, eager: `python torch_step.py INPUTS HIDDEN ACTIONS BATCH`.

For each line on stdin 50 steps, and their median in milliseconds on stdout.
"""

import json
import sys
import time
from statistics import median

import torch
from torch import nn

inputs, hidden, actions, batch = (int(one) for one in sys.argv[1:5])
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
    spent = []
    for _ in range(50):
        begun_s = time.perf_counter()
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
    print(json.dumps({"ms": 1e3 * median(spent)}), flush=True)
