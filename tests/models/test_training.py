"""The training loop: independence of seeds, early stopping, failures."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from ddobench.errors import UsageError
from ddobench.models.networks import Passes, StackedMLP
from ddobench.models.training import (
    EarlyStopping,
    History,
    Minibatches,
    Split,
    Training,
    backprop_squared_error,
    take_rows,
)
from ddobench.parts.surrogates import mean_squared_error
from ddobench.rng import Streams

CPU = torch.device("cpu")
QUICK = Training(steps=40, batch=16, rate=1e-2, holdout=0.2)


def make_tables(seeds: list[int], rows: int = 60) -> list[Tensor]:  # (S, N, 3), (S, N)
    x = Streams(seeds, "test/x").normal(rows, 3)
    return [x, x[..., 0] * x[..., 1] + x[..., 2]]


def train(
    seeds: list[int], training: Training, tables: list[Tensor] | None = None
) -> tuple[StackedMLP, History]:
    tables = make_tables(seeds) if tables is None else tables
    network = StackedMLP((3, 16, 1), Streams(seeds, "test/weights"), CPU)
    passes, checking = Passes(network), Passes(network)
    history = training.run(
        [network],
        tables,
        training.split(tables[0].shape[1], Streams(seeds, "test/split")),
        step=lambda x, y: backprop_squared_error(passes, x, y),
        check=lambda x, y: mean_squared_error(checking, x, y),
        rng=Streams(seeds, "test/minibatches"),
        what="surrogate",
    )
    return network, history


def row_of(network: StackedMLP, seed: int) -> list[Tensor]:
    return [parameter[seed].detach().clone() for parameter in network.parameters()]


def same(first: list[Tensor], second: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.bits
@pytest.mark.parametrize("patience", [None, 2])
def test_a_seed_does_not_depend_on_other_seeds(patience: int | None) -> None:
    training = replace(QUICK, patience=patience)
    few, few_history = train([3, 5], training)
    many, many_history = train([1, 3, 5, 7, 8], training)
    assert same(row_of(few, 0), row_of(many, 1))
    assert same(row_of(few, 1), row_of(many, 2))
    steps = min(len(few_history.losses), len(many_history.losses))
    assert torch.equal(few_history.losses[:steps, 0], many_history.losses[:steps, 1])
    assert few_history.kept_step[1] == many_history.kept_step[2]


@pytest.mark.bits
def test_a_seed_does_not_depend_on_how_the_stack_fills_the_registers() -> None:
    training = replace(QUICK, steps=200)
    few, _ = train([3, 5], training)
    for others in (7, 9, 18):
        many, _ = train([*range(10, 10 + others), 3], training)
        assert same(row_of(few, 0), row_of(many, others))


def test_training_equals_a_plain_loop_over_one_network() -> None:
    seeds = [1, 2]
    stack = StackedMLP((3, 16, 1), Streams(seeds, "test/weights"), CPU)
    model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
    with torch.no_grad():
        for own, theirs in zip(
            model.parameters(),
            [one for pair in zip(stack.weights, stack.biases, strict=True) for one in pair],
            strict=True,
        ):
            own.copy_(theirs[0].T if own.ndim == 2 else theirs[0, 0])
    tables = make_tables(seeds)
    split = QUICK.split(60, Streams(seeds, "test/split"))
    batches = Minibatches(tables, split.trained, 16, Streams(seeds, "test/minibatches"))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(QUICK.steps):
        x, y = next(batches)
        optimiser.zero_grad()
        torch.autograd.backward(nn.functional.mse_loss(model(x[0])[:, 0], y[0]))
        optimiser.step()
    network, _ = train(seeds, QUICK)
    torch.testing.assert_close(network(tables[0])[0], model(tables[0][0]), rtol=1e-3, atol=1e-4)


def test_training_learns() -> None:
    _, history = train([1, 2, 3], replace(QUICK, steps=300))
    assert (history.losses[-20:].mean(dim=0) < 0.3 * history.losses[:5].mean(dim=0)).all()
    assert (history.held_out[-1] < 0.5 * history.held_out[0]).all()
    assert not history.failures


def test_a_pass_contains_each_training_row_once_and_no_held_out_row() -> None:
    seeds = [1, 2]
    x = torch.arange(2 * 40).view(2, 40)  # every row is its own number
    split = replace(QUICK, holdout=0.2).split(40, Streams(seeds, "test/split"))
    batches = Minibatches([x], split.trained, 8, Streams(seeds, "test/minibatches"))
    shown = torch.cat([next(batches)[0].clone() for _ in range(4)], dim=1)  # 32 of 32 rows
    again = torch.cat([next(batches)[0].clone() for _ in range(4)], dim=1)
    trained = take_rows(x, split.trained).sort(dim=1).values
    assert torch.equal(shown.sort(dim=1).values, trained)
    assert torch.equal(again.sort(dim=1).values, trained)
    assert not torch.equal(shown, again), "each pass is shuffled anew"
    assert not torch.equal(shown[0], shown[1] - 40), "each seed is shuffled on its own"
    assert not torch.isin(take_rows(x, split.held_out), shown).any()


def test_a_table_smaller_than_a_minibatch_is_one_minibatch() -> None:
    rows = torch.arange(5).expand(2, 5)
    batches = Minibatches([torch.rand(2, 5, 3)], rows, 128, Streams([1, 2], "test"))
    assert next(batches)[0].shape == (2, 5, 3)


def test_without_held_out_rows_nothing_is_checked() -> None:
    _, history = train([1, 2], replace(QUICK, holdout=0.0))
    assert history.check_steps == ()
    assert history.held_out.shape == (0, 2)
    assert history.kept_step.tolist() == [40, 40]


def test_the_best_weights_are_kept_and_not_the_last() -> None:
    network = StackedMLP((3, 4, 1), Streams([1, 2], "test"), CPU)
    stopping = EarlyStopping([network], patience=2)
    best: list[list[Tensor]] = [[], []]
    for step, losses in enumerate([(3.0, 3.0), (1.0, 2.0), (2.0, 1.0), (5.0, 5.0), (0.5, 0.9)]):
        with torch.no_grad():
            network.flat.add_(1.0)
        for seed, at in enumerate((1, 2)):
            if step == at:
                best[seed] = row_of(network, seed)
        stopping.note(step, torch.tensor(losses))
    stopping.restore()
    # seed 0 had waited twice before its last improvement, which therefore no longer counts;
    # seed 1 had waited once
    assert same(row_of(network, 0), best[0])
    assert not same(row_of(network, 1), best[1])
    assert stopping.kept_step(99).tolist() == [1, 4]


def test_training_ends_when_every_seed_has_waited_long_enough() -> None:
    _, history = train([1, 2], replace(QUICK, steps=4000, rate=0.05, patience=1))
    assert len(history.losses) < 4000
    assert (history.kept_step < len(history.losses)).all()
    for seed in range(2):
        kept = history.check_steps.index(int(history.kept_step[seed]))
        assert history.held_out[kept, seed] == history.held_out[: kept + 1, seed].min()


@pytest.mark.parametrize("poison", [torch.nan, 1e30])
def test_a_seed_that_diverges_is_reported_and_affects_no_other(poison: float) -> None:
    seeds = [1, 2, 3]
    tables = make_tables(seeds)
    healthy, _ = train(seeds, QUICK, tables)
    tables[1][1] = poison
    network, history = train(seeds, QUICK, tables)
    assert list(history.failures) == [1]
    assert "surrogate: " in history.failures[1]
    assert same(row_of(network, 0), row_of(healthy, 0))
    assert same(row_of(network, 2), row_of(healthy, 2))


def test_a_split_holds_out_a_tenth_of_each_seed() -> None:
    split = Training().split(50, Streams([1, 2], "test"))
    assert split.held_out.shape == (2, 5)
    every = torch.cat([split.trained, split.held_out], dim=1).sort(dim=1).values
    assert torch.equal(every, torch.arange(50).expand(2, 50))
    assert isinstance(split, Split)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"steps": 0}, "training.steps must be a whole number of at least 1"),
        ({"batch": 0}, "training.batch must be a whole number of at least 1"),
        ({"holdout": 1.0}, r"training.holdout must be a share in \[0, 1\)"),
        ({"patience": 0}, "training.patience must be a whole number"),
        ({"patience": 3, "holdout": 0.0}, "training.patience needs held-out rows"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, float], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        Training(**settings)  # type: ignore[arg-type]
