"""The networks of Cliqueformer: a chain of cliques, tokens, and a mean over cliques."""

import pytest
import torch
from torch import nn

from ddobench.graphs import Graph
from ddobench.models.clique_transformer import (
    CLIP,
    Block,
    ClippedAdamW,
    CliqueChain,
    Decoder,
    Encoder,
    Regressor,
    Shape,
    TokenNorm,
)
from ddobench.rng import Stream

RNG = Stream(0, "test")
SHAPE = Shape(width=8, heads=2, feed=16, blocks=1, hidden=12, dropout=0.5)
CHAIN = CliqueChain(count=3, size=3, overlap=1)


def test_a_chain_of_cliques_has_the_published_index_rows() -> None:
    assert CHAIN.latent == 7
    assert CHAIN.members().tolist() == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    assert CliqueChain(20, 3, 1).latent == 41
    assert CliqueChain(4, 21, 1).latent == 81


def test_the_chain_of_a_graph_has_its_shape() -> None:
    graph = Graph.from_cliques(7, [(0, 1, 2), (2, 3, 4), (4, 5, 6)])
    assert CliqueChain.like(graph) == CHAIN
    assert CliqueChain.like(Graph.from_cliques(4, [(0, 1, 2, 3)])) == CliqueChain(1, 4, 0)
    assert CliqueChain.like(Graph.from_edges(3, [])) == CliqueChain(3, 1, 0)


@pytest.mark.parametrize("d", [1, 2, 4, 5, 11, 41])
def test_a_default_chain_covers_every_variable_and_few_more(d: int) -> None:
    chain = CliqueChain.cover(d, 4, 1)
    assert d <= chain.latent < d + 3


def test_a_value_is_additive_over_cliques() -> None:
    regressor = Regressor(CHAIN, SHAPE, RNG.child("regressor")).eval()
    z = RNG.child("z").normal(1, 7)

    z.requires_grad_()
    (slope,) = torch.autograd.grad(
        regressor(z[:, CHAIN.members()]).sum(), [z], create_graph=True
    )  # (1, e)
    mixed = torch.cat([torch.autograd.grad(one, [z], retain_graph=True)[0] for one in slope[0]])
    assert mixed[0, 1] != 0
    assert (mixed[0, 3:] == 0).all()
    assert (mixed[3, [0, 1, 5, 6]] == 0).all()


def test_cliques_of_equal_codes_differ_in_value_by_their_places() -> None:
    regressor = Regressor(CHAIN, SHAPE, RNG.child("regressor")).eval()
    alone = [regressor(torch.eye(3)[i][None, :, None].expand(1, 3, 3)) for i in range(3)]
    assert len({one.item() for one in alone}) == 3


def test_dropout_comes_from_the_stream_alone() -> None:
    regressor = Regressor(CHAIN, SHAPE, RNG.child("regressor"))
    cliques = RNG.child("cliques").normal(5, 3, 3)
    first, again = (regressor(cliques, Stream(1, "dropout")) for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, regressor(cliques, Stream(2, "dropout")))


def test_encoder_and_decoder_return_normals_of_the_right_shape() -> None:
    x = RNG.child("x").normal(6, 5)
    mean, sd = Encoder(5, CHAIN.latent, SHAPE, RNG.child("encoder"))(x)
    assert mean.shape == sd.shape == (6, 7)
    middle, spread = Decoder(5, CHAIN, SHAPE, RNG.child("decoder"))(mean[:, CHAIN.members()])
    assert middle.shape == spread.shape == (6, 5)
    assert (sd > 0).all()
    assert (spread > 0).all()


def test_a_block_mixes_tokens_but_not_rows() -> None:
    block = Block(8, 2, 16, RNG.child("block"))
    x = RNG.child("tokens").normal(2, 4, 8)
    other = x.clone()
    other[0, 3] += 1
    before, after = block(x), block(other)
    assert not torch.allclose(before[0, 0], after[0, 0])
    torch.testing.assert_close(before[1], after[1])


def test_each_token_is_normalised_by_itself() -> None:
    norm = TokenNorm(2)
    x = torch.stack([RNG.child("a").normal(50, 8), 9 + 3 * RNG.child("b").normal(50, 8)], dim=1)
    normal = norm(x)
    torch.testing.assert_close(normal.mean(dim=(0, 2)), torch.zeros(2), rtol=0, atol=1e-5)
    assert norm.mean[1] > norm.mean[0] + 0.5  # remembered


@pytest.mark.parametrize("scale", [0.01, 100.0])  # of the gradient: below and above the clip
def test_steps_are_those_of_adamw_with_a_clipped_gradient(scale: float) -> None:
    ours, theirs = (Block(8, 2, 16, RNG.child("stepped")) for _ in range(2))
    x = RNG.child("x").normal(5, 4, 8)
    matrices, others = _by_shape(ours)
    optimiser = ClippedAdamW([(matrices, 0.3), (others, 0.0)], 0.01, (0.8, 0.9))
    matrices, others = _by_shape(theirs)
    reference = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.3}, {"params": others, "weight_decay": 0.0}],
        lr=0.01,
        betas=(0.8, 0.9),
    )
    for _ in range(3):
        optimiser.step(scale * (ours(x) - x).square().sum() / x.numel())
        reference.zero_grad()
        (scale * (theirs(x) - x).square().sum() / x.numel()).backward()
        norm = torch.nn.utils.clip_grad_norm_(theirs.parameters(), CLIP)
        assert (norm > CLIP) == (scale > 1)
        reference.step()
    for (name, one), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        # The bias of the keys has no effect, so its gradient is rounding, whose sign AdamW follows.
        effective = torch.arange(len(one)) // 8 != 1 if name == "ask.bias" else slice(None)
        torch.testing.assert_close(one[effective], other[effective])


def _by_shape(block: Block) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Return the matrices of a block, and its other parameters."""
    parameters = list(block.parameters())
    return [one for one in parameters if one.ndim == 2], [
        one for one in parameters if one.ndim != 2
    ]
