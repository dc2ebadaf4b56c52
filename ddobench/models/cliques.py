"""Networks over cliques: one shared MLP per seed on masked copies of its input, averaged.

The value of a design x is the mean over the cliques C of f(x with all but C set to zero). For
variables without a common clique the mixed derivative is exactly zero.

`CliqueMLP.forward` is the literal definition, for autograd. `CliquePasses` computes the same
without the copies: the first layer reads only the members of each clique, and later layers process
the rows of a few cliques at a time, which fit into the cache. Seeds are processed one after the
other, so that every seed can have its own graph, and has the same result beside any others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ddobench.graphs import Graph
from ddobench.models.networks import StackedMLP, gradient_of, threshold_backward
from ddobench.models.tensors import fast_products
from ddobench.rng import Streams

CACHED = 2**17  # hidden units of a layer processed at a time, half a megabyte
ROWS_AT_ONCE = 128  # designs climbed at a time


class CliqueMLP(StackedMLP):
    """S networks, each averaged over the cliques of its own graph."""

    def __init__(
        self, sizes: Sequence[int], graphs: Sequence[Graph], rng: Streams, device: torch.device
    ) -> None:
        super().__init__(sizes, rng, device)
        self.graphs = list(graphs)

    @property
    def graphs(self) -> list[Graph]:
        """The graph of each seed; can be set at any time."""
        return self._graphs

    @graphs.setter
    def graphs(self, graphs: Sequence[Graph]) -> None:
        self._graphs = list(graphs)
        self.slots = [_Slots.of(graph, self.flat.device) for graph in graphs]

    def forward(self, x: Tensor) -> Tensor:  # (S, B, d) -> (S, B, 1)
        """Return the mean of each seed's network over the masked copies of its rows."""
        outputs = []
        for seed, (rows, slots) in enumerate(zip(x, self.slots, strict=True)):
            h = rows * slots.mask[:, None, :]  # (C, B, d)
            for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
                h = h @ weight[seed] + bias[seed]
                if layer < len(self.weights) - 1:
                    h = h.relu()
            outputs.append(h.mean(dim=0))  # (B, 1)
        return torch.stack(outputs)

    def passes(self) -> "CliquePasses":
        """Return the passes by hand."""
        return CliquePasses(self)


@dataclass(frozen=True)
class _Slots:
    """The members of the cliques of one seed, each padded to the size of the largest.

    A slot without a member points to column d, which is always zero; the last slot of each clique
    points to column d + 1, which is always one, for the bias.
    """

    members: Tensor  # (C, k) columns of the extended input
    incidence: Tensor  # (C * k, d + 2) one where a slot points
    mask: Tensor  # (C, d) one for the members of each clique

    @classmethod
    def of(cls, graph: Graph, device: torch.device) -> "_Slots":
        largest = max(map(len, graph.cliques))
        zero, one = graph.d, graph.d + 1
        members = torch.tensor(
            [[*clique, *[zero] * (largest - len(clique)), one] for clique in graph.cliques]
        )
        incidence = torch.nn.functional.one_hot(members, graph.d + 2).to(torch.float32)
        return cls(
            members=members.to(device),
            incidence=incidence.flatten(0, 1).to(device),
            mask=incidence.amax(dim=1)[:, : graph.d].to(device),
        )


class CliquePasses:
    """Forward and backward passes of a clique network without autograd, seed after seed.

    `backward` needs the activations that the last `forward` left, and consumes them.
    """

    def __init__(self, network: CliqueMLP) -> None:
        self._network = network
        self._seeds = [_OneSeed(network, seed) for seed in range(len(network.slots))]

    def forward(self, x: Tensor) -> Tensor:  # (S, B, d) -> (S, B, 1)
        """Return the values, and keep what the backward pass needs."""
        return torch.stack([one.forward(*pair) for one, pair in self._each(x)])

    def backward(self, error: Tensor) -> None:  # (S, B, 1)
        """Write d loss / d parameters into the stack's gradient, from d loss / d value."""
        for one, (rows, slots) in self._each(error):
            one.backward(rows, slots)

    def value(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K)
        """Return the values, and keep nothing."""
        return torch.stack([one.climb(*pair, gradient=False)[0] for one, pair in self._each(x)])

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values of x (S, K, d), (S, K), and their gradients, (S, K, d)."""
        pairs = [one.climb(*pair, gradient=True) for one, pair in self._each(x)]
        values, gradients = zip(*pairs, strict=True)
        return torch.stack(values), torch.stack(gradients)

    def _each(self, rows: Tensor) -> Iterator[tuple["_OneSeed", tuple[Tensor, _Slots]]]:
        return zip(self._seeds, zip(rows, self._network.slots, strict=True), strict=True)


class _OneSeed:
    """The passes of one seed. C cliques, k slots in each, w hidden units, B rows."""

    def __init__(self, network: CliqueMLP, seed: int) -> None:
        self._weights = [weight.detach()[seed] for weight in network.weights]  # (in, out) each
        self._biases = [bias.detach()[seed, 0] for bias in network.biases]  # (out,) each
        self._weight_gradients = [gradient_of(weight)[seed] for weight in network.weights]
        self._bias_gradients = [gradient_of(bias)[seed, 0] for bias in network.biases]
        self._width = max(network.sizes[1:])
        self._hidden: list[Tensor] = []  # (C, B, w) after each hidden layer

    def forward(self, x: Tensor, slots: _Slots) -> Tensor:  # (B, d) -> (B, 1)
        cliques, rows = len(slots.members), len(x)
        shape = (cliques, rows)
        if not self._hidden or self._hidden[0].shape[:2] != shape:
            self._hidden = [x.new_empty(*shape, len(bias)) for bias in self._biases[:-1]]
        self._fed = _extend(x.T)[slots.members]  # (C, k, B)
        first = self._first_layer()[slots.members]  # (C, k, w)
        self._total = torch.zeros_like(self._hidden[-1][0])  # (B, w) summed over cliques
        for part in _parts(cliques, rows, self._width):
            hidden = [layer[part] for layer in self._hidden]  # (c, B, w) each
            self._ascend(self._fed[part], first[part], hidden)
            self._total += hidden[-1].sum(dim=0)
        return self._read_out(self._total, cliques)

    def backward(self, error: Tensor, slots: _Slots) -> None:  # (B, 1)
        cliques, rows = len(slots.members), len(error)
        share = error / cliques  # (B, 1) the share of each clique
        torch.mm(self._total.T, share, out=self._weight_gradients[-1])
        torch.sum(error, dim=0, out=self._bias_gradients[-1])
        for gradient in (*self._weight_gradients[1:-1], *self._bias_gradients[1:-1]):
            gradient.zero_()
        top = share @ self._weights[-1].T  # (B, w)
        at_slots = top.new_empty(*slots.members.shape, self._weights[0].shape[1])  # (C, k, w)
        for part in _parts(cliques, rows, self._width):
            hidden = [layer[part] for layer in self._hidden]
            below = self._descend(top, hidden, weights=True)  # (c, B, w)
            torch.bmm(self._fed[part], below, out=at_slots[part])
        gathered = slots.incidence.T @ at_slots.flatten(0, 1)  # (d + 2, w)
        self._weight_gradients[0].copy_(gathered[:-2])
        self._bias_gradients[0].copy_(gathered[-1])

    def climb(self, x: Tensor, slots: _Slots, *, gradient: bool) -> tuple[Tensor, Tensor]:
        """Return values (K,) and gradients (K, d) of x (K, d), with few activations at a time.

        The mean over cliques is linear, so the backward pass of a clique can follow its forward
        pass.
        """
        cliques = len(slots.members)
        first = self._first_layer()[slots.members]  # (C, k, w)
        top = self._weights[-1].T / cliques  # (1, w)
        values, gradients = [], []
        for block in torch.split(x, ROWS_AT_ONCE):  # (B, d)
            fed = _extend(block.T)[slots.members]  # (C, k, B)
            parts = _parts(cliques, len(block), self._width)
            buffers = [
                x.new_empty(parts[0].stop, len(block), len(bias)) for bias in self._biases[:-1]
            ]
            total = torch.zeros_like(buffers[-1][0])  # (B, w)
            at_slots = torch.empty_like(fed) if gradient else fed
            for part in parts:
                hidden = [layer[: part.stop - part.start] for layer in buffers]
                self._ascend(fed[part], first[part], hidden)
                total += hidden[-1].sum(dim=0)
                if gradient:
                    below = self._descend(top, hidden, weights=False)  # (c, B, w)
                    torch.bmm(first[part], below.mT, out=at_slots[part])
            values.append(self._read_out(total, cliques)[:, 0])
            gradients.append((slots.incidence.T @ at_slots.flatten(0, 1))[:-2].T)  # (B, d)
        return torch.cat(values), torch.cat(gradients)

    def _first_layer(self) -> Tensor:  # (d + 2, w)
        """Return the weights of the first layer with a row of zeros and the bias below."""
        weight, bias = self._weights[0], self._biases[0]
        return torch.cat([weight, torch.zeros_like(bias)[None], bias[None]])

    def _ascend(self, fed: Tensor, first: Tensor, hidden: list[Tensor]) -> None:
        """Fill the hidden layers (c, B, w) from the slots (c, k, B) and their weights (c, k, w)."""
        with fast_products(fed.mT, first):
            torch.bmm(fed.mT, first, out=hidden[0]).relu_()
        for layer in range(1, len(hidden)):
            below, here = hidden[layer - 1].flatten(0, 1), hidden[layer].flatten(0, 1)
            with fast_products(below, self._weights[layer]):
                torch.mm(below, self._weights[layer], out=here)
            here.add_(self._biases[layer]).relu_()

    def _descend(self, top: Tensor, hidden: list[Tensor], *, weights: bool) -> Tensor:
        """Turn d loss / d last hidden layer, the same for all cliques, into that of the first.

        The activations are overwritten.
        """
        error: Tensor = threshold_backward(
            top.expand_as(hidden[-1]), hidden[-1], 0, grad_input=hidden[-1]
        )
        for layer in reversed(range(1, len(hidden))):
            below, here = hidden[layer - 1].flatten(0, 1), error.flatten(0, 1)  # (c * B, w) each
            if weights:
                with fast_products(below.T, here):
                    self._weight_gradients[layer].addmm_(below.T, here)
                self._bias_gradients[layer].add_(here.sum(dim=0))
            with fast_products(here, self._weights[layer].T):
                upstream = torch.mm(here, self._weights[layer].T)
            threshold_backward(upstream, below, 0, grad_input=below)
            error = hidden[layer - 1]
        return error

    def _read_out(self, total: Tensor, cliques: int) -> Tensor:  # (B, w) -> (B, 1)
        return torch.mm(total, self._weights[-1]).div_(cliques).add_(self._biases[-1])


def _extend(columns: Tensor) -> Tensor:  # (d, B) -> (d + 2, B)
    """Add a column of zeros for empty slots and a column of ones for the bias."""
    one = torch.ones_like(columns[:1])
    return torch.cat([columns, torch.zeros_like(one), one])


def _parts(cliques: int, rows: int, width: int) -> list[slice]:
    """Split the cliques into parts whose hidden units fit into the cache."""
    size = min(cliques, max(1, CACHED // (rows * width)))
    return [slice(i, min(i + size, cliques)) for i in range(0, cliques, size)]
