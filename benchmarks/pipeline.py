"""The efficiency of the parts of FGM, relative to a large matrix product.

A step of the clique network over random graphs, one of its ascent, and a training step of the VAE.
Every number is the least CPU time of interleaved rounds on one thread, so a busy machine hardly
changes the ratios. The limit counts only necessary operations: the members of each clique in the
first layer, without padding and masks.

Run: python benchmarks/pipeline.py [--rounds 15]
"""

import argparse
import sys
import time
from collections.abc import Callable

import torch

from ddobench.graphs import Graph
from ddobench.models.cliques import CliqueMLP
from ddobench.models.networks import StackedMLP
from ddobench.models.training import Minibatches, backprop_squared_error
from ddobench.parts.vae import BoundStep
from ddobench.rng import Streams
from ddobench.runner.provenance import describe_machine

SEEDS, ROWS, BATCH, D, DESIGNS = 5, 2000, 128, 41, 1024
DENSITY = 0.08  # of the random graphs, about what the test finds at d=41
LARGE = 2048
CPU = torch.device("cpu")

Step = Callable[[], object]


def draw_graphs() -> list[Graph]:
    """Draw a graph for each seed."""
    drawn = Streams(range(SEEDS), "benchmark/graph").uniform(D, D)  # (S, d, d)
    return [
        Graph.from_edges(D, [(i, j) for i in range(D) for j in range(i) if one[i, j] < DENSITY])
        for one in drawn
    ]


def make_minibatches(rng: Streams) -> Minibatches:
    """Return minibatches of designs and values."""
    tables = [rng.child("x").normal(ROWS, D), rng.child("y").normal(ROWS)]
    rows = torch.arange(ROWS).expand(SEEDS, ROWS)
    return Minibatches(tables, rows, BATCH, rng.child("minibatches"))


def make_fit(width: int, graphs: list[Graph]) -> tuple[Step, float]:
    """Return a whole training step of clique networks, and its operations."""
    rng = Streams(range(SEEDS), "benchmark")
    network = CliqueMLP((D, width, width, 1), graphs, rng.child("weights"), CPU)
    batches, passes = make_minibatches(rng), network.passes()
    optimiser = torch.optim.AdamW([network.flat], lr=1e-3, fused=True)

    def step() -> None:
        backprop_squared_error(passes, *next(batches))
        optimiser.step()

    cliques = [clique for graph in graphs for clique in graph.cliques]
    return step, 2 * BATCH * sum(2 * len(clique) * width + 3 * width**2 for clique in cliques)


def make_climb(width: int, graphs: list[Graph]) -> tuple[Step, float]:
    """Return the gradient of an ascent step on all designs, and its operations."""
    rng = Streams(range(SEEDS), "benchmark")
    network = CliqueMLP((D, width, width, 1), graphs, rng.child("weights"), CPU)
    passes, x = network.passes(), rng.child("x").normal(DESIGNS, D)
    cliques = [clique for graph in graphs for clique in graph.cliques]
    flops = 2 * DESIGNS * sum(2 * len(clique) * width + 2 * width**2 for clique in cliques)
    return lambda: passes.value_and_gradient(x), flops


def make_vae(width: int) -> tuple[Step, float]:
    """Return a whole training step of VAEs, and its operations."""
    rng = Streams(range(SEEDS), "benchmark")
    encoder = StackedMLP((D, width, width, 2 * D), rng.child("encoder"), CPU)
    decoder = StackedMLP((D, width, width, D), rng.child("decoder"), CPU)
    batches = make_minibatches(rng)
    descend = BoundStep(encoder, decoder, 0.01, 1.0, 0, rng.child("noise"))
    optimiser = torch.optim.AdamW([encoder.flat, decoder.flat], lr=1e-3, fused=True)

    def step() -> None:
        descend(next(batches)[0])
        optimiser.step()

    first = D * width  # without the gradient of the data
    rest = width**2 + 2 * D * width + D * width + width**2 + D * width
    return step, 2 * BATCH * SEEDS * (2 * first + 3 * rest)


def cpu_seconds(work: Step) -> float:
    """Return the CPU seconds of a piece of work."""
    began = time.thread_time()
    work()
    return time.thread_time() - began


def main() -> int:
    """Measure, print the table, and return 1 if a limit is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)

    graphs = draw_graphs()
    cases: dict[str, tuple[tuple[Step, float], float | None]] = {
        "clique network, width 256": (make_fit(256, graphs), 0.55),
        "its ascent, 1024 designs": (make_climb(256, graphs), None),
        "clique network, width 64": (make_fit(64, graphs), None),
        "vae, width 256": (make_vae(256), 0.50),
    }
    left, right = torch.rand(2, LARGE, LARGE)
    product = torch.empty(LARGE, LARGE)
    best = dict.fromkeys(cases, float("inf"))
    peak = 0.0
    for _ in range(rounds):
        seconds = cpu_seconds(lambda: torch.mm(left, right, out=product))
        peak = max(peak, 2 * LARGE**3 / seconds)
        for name, ((step, _), _) in cases.items():
            best[name] = min(best[name], *(cpu_seconds(step) for _ in range(3)))

    machine = describe_machine()
    cliques = sum(len(graph.cliques) for graph in graphs) / SEEDS
    print(f"{machine['cpu']}, 1 thread, torch {torch.__version__}, CPU time")
    print(f"{SEEDS} seeds, batch {BATCH}, d={D}, {cliques:.0f} cliques per seed; "
          f"matrix product of {LARGE}: {peak / 1e9:.0f} GFLOP/s")  # fmt: skip
    print(f"{'ms per seed and step':<28}{'limit':>9}{'ours':>9}{'share':>8}")
    met = True
    for name, ((_, flops), least) in cases.items():
        limit, ours = flops / peak / SEEDS * 1e3, best[name] / SEEDS * 1e3
        line = f"{name:<28}{limit:>9.2f}{ours:>9.2f}{limit / ours:>8.0%}"
        if least is not None:
            line += f"   least {least:.0%}"
            met &= limit / ours >= least
        print(line)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
