"""The published next-cell network in torch, trained by Opacus with ghost clipping and with its default hooks.

Runs in an environment of its own (torch, opacus); called by dp_sgd.py, prints CPU milliseconds as JSON.
"""

from __future__ import annotations

import json
import sys
import time
import warnings

import torch
from opacus import PrivacyEngine
from torch import nn

CELLS, BATCH = int(sys.argv[1]), int(sys.argv[2])
REPEATS = 3


class NextCell(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.place = nn.Embedding(CELLS, 50)
        self.hidden = nn.Linear(101, 200)
        self.out = nn.Linear(200, 121)

    def forward(self, given):
        place = self.place(given[:, :2].long())
        joined = torch.cat([place.flatten(1), given[:, 2:] / 24], dim=1)
        return self.out(torch.relu(self.hidden(joined)))


def step_ms(mode: str) -> float:
    torch.manual_seed(1)
    given = torch.cat([torch.randint(0, CELLS, (BATCH * 4, 2)), torch.randint(0, 24, (BATCH * 4, 1))], dim=1).float()
    wanted = torch.randint(0, 121, (BATCH * 4,))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(given, wanted), batch_size=BATCH)
    model, criterion = NextCell(), nn.CrossEntropyLoss()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    if mode != "plain":
        common = {"module": model, "optimizer": optimiser, "data_loader": loader, "noise_multiplier": 1.0, "max_grad_norm": 1.0}
        engine = PrivacyEngine()
        if mode == "ghost":
            model, optimiser, criterion, loader = engine.make_private(
                **common, criterion=criterion, grad_sample_mode="ghost", poisson_sampling=False
            )
        else:
            model, optimiser, loader = engine.make_private(**common, poisson_sampling=False)
    spent = []
    for _ in range(REPEATS):
        for batch, labels in loader:
            start = time.process_time()
            optimiser.zero_grad()
            criterion(model(batch), labels).backward()
            optimiser.step()
            spent.append((time.process_time() - start) * 1e3)
    return sorted(spent)[len(spent) // 2]


warnings.simplefilter("ignore")
torch.set_num_threads(1)
print(json.dumps({mode: step_ms(mode) for mode in ("plain", "ghost", "hooks")}))
