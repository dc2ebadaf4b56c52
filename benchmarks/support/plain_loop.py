"""One seed of GA as a plain PyTorch loop; prints the CPU seconds of its training.

Run by `seeds.py`, once per seed. Only the task and the oracle are the project's.
"""

import sys
import time

import torch
from torch import nn

from ddobench.tasks.rbf import RBF

WARM_UP = 10  # steps that are not timed


def main(seed: int, width: int, steps: int) -> None:
    """Train, climb, evaluate."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    problem = RBF(d=41, n=2000, family="chain", map="orthogonal").problem([seed])
    x, y = problem.data.x[0], problem.data.y[0]
    mean, sd = x.mean(dim=0), x.std(dim=0)
    z, t = ((x - mean) / sd).float(), ((y - y.mean()) / y.std()).float()
    held = len(z) // 10
    model = nn.Sequential(
        nn.Linear(41, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)
    )
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    order = torch.randperm(len(z) - held) + held
    position = 0
    for step in range(WARM_UP + steps):
        if step == WARM_UP:
            began = time.process_time()
        if position + 128 > len(order):
            order, position = torch.randperm(len(z) - held) + held, 0
        rows = order[position : position + 128]
        position += 128
        optimiser.zero_grad()
        torch.autograd.backward(nn.functional.mse_loss(model(z[rows])[:, 0], t[rows]))
        optimiser.step()
    trained = time.process_time() - began

    designs = z[torch.randperm(len(z))[:1024]]
    values = []
    for _ in range(50):
        designs = designs.detach().requires_grad_()
        (slope,) = torch.autograd.grad(model(designs).sum(), designs)
        designs = designs + 0.05 * 41**0.5 * slope
        values.append(problem.evaluate((designs.detach() * sd + mean)[None]))
    print(trained)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
