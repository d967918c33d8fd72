"""Banks: several networks of one architecture that train together."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from rdeepsense import _torch
from rdeepsense.dropout import DropoutLinear, StochasticNetwork
from rdeepsense.dropout.layers import DropoutEntries, dropped
from rdeepsense.errors import InputError
from rdeepsense.heads import Params
from rdeepsense.networks.periodic import PeriodicEmbedding, sines_cosines

# --------------------------------------------------------------------------------------------------
# Stacked periodic embeddings of the members of a bank
# --------------------------------------------------------------------------------------------------


class StackedEmbedding(nn.Module):
    """K embeddings of one shape (see `networks.periodic`): x (K, rows, inputs) -> [x, e].

    Rows are the last axis inside, so that the products of each input are of wide matrices. All
    tensors have K first: c (K, inputs, frequencies, 1), W (K, inputs, width, 2 frequencies) and
    b (K, inputs, width, 1). Of these only W decays.
    """

    def __init__(self, members: Sequence[PeriodicEmbedding]) -> None:
        super().__init__()
        self.frequency, self.weight, self.bias = (
            nn.Parameter(torch.stack([m.get_parameter(name).detach() for m in members]))
            for name in ("frequency", "weight", "bias")
        )
        for flat in (self.frequency, self.bias):
            flat.data = flat.data.unsqueeze(-1)

    @property
    def waves(self) -> int:
        """The sines and cosines that a member makes of one row."""
        return self.weight[0, :, 0].numel()

    def forward(self, x: Tensor) -> Tensor:
        waves = sines_cosines(x.mT.unsqueeze(-2), self.frequency, -2)
        e = (self.weight @ waves + self.bias).relu()
        return torch.cat([x, e.flatten(1, 2).mT], -1)


# --------------------------------------------------------------------------------------------------
# Banks: K networks that share batches
#
# The loop knows only `Bank`. `DenseBank` stacks the weights of plain fully-connected networks, so
# that K small matrix products become one, and those of periodic embeddings before them;
# `ModuleBank` holds K copies of any other network.
# --------------------------------------------------------------------------------------------------

# Layers that work entry by entry, and so on stacked members as on one.
ELEMENTWISE = (nn.ReLU, nn.LeakyReLU, nn.ELU, nn.SELU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid)


class Bank(nn.Module, ABC):
    """K networks; every tensor that concerns members has K as its leading axis."""

    def __init__(self, networks: Sequence[StochasticNetwork]) -> None:
        super().__init__()
        self.size = len(networks)
        # A tuple hides the originals from torch: they are the moulds that `networks` fills.
        self._moulds = tuple(copy.deepcopy(network).cpu() for network in networks)
        self.kept: dict[str, Tensor] = {}

    @property
    def width(self) -> int:
        """The most numbers that a layer of a member makes of one row."""
        return max(1, self._moulds[0].width)

    @property
    def numbers(self) -> int:
        """The most numbers of one row that a member holds at once: what memory goes by."""
        return self.width

    @property
    def draws_elsewhere(self) -> bool:
        """Whether a step may draw from torch's default generator."""
        return _torch.draws_elsewhere(self.modules())

    @abstractmethod
    def forward(self, x: Tensor, each: bool = False) -> Params:
        """Return all members' parameters for a shared batch, or with `each` for one batch each."""

    @abstractmethod
    def clip_gradients(self, gradients: list[Tensor], limit: float) -> None:
        """Scale each member's part of `gradients`, one per parameter, to a norm of `limit`."""

    @abstractmethod
    def decay_weights(self, factors: Tensor) -> None:
        """Multiply each member's weights (not its biases) by its factor."""

    @abstractmethod
    def keep(self, members: Tensor) -> None:
        """Copy the present state of the members chosen by a boolean mask into `kept`."""

    @abstractmethod
    def _fill(self, mould: StochasticNetwork, member: int) -> None:
        """Write the kept weights of one member into a network."""

    def describe(self) -> str:
        """Describe layers and drop probabilities of every member in words."""
        return " ".join(map(str, self._moulds))

    def networks(self) -> list[StochasticNetwork]:
        """Return the members as separate networks on the CPU, with the weights last kept."""
        networks = [copy.deepcopy(mould).eval() for mould in self._moulds]
        with torch.no_grad():
            for member, network in enumerate(networks):
                self._fill(network, member)
        return networks


def stack(networks: Sequence[StochasticNetwork]) -> Bank:
    """Return the fastest bank that can hold these networks."""
    if not networks:
        raise InputError("a bank needs at least one network")
    return DenseBank(networks) if all(map(_is_dense, networks)) else ModuleBank(networks)


class DenseBank(Bank):
    """Fully-connected networks of one shape, their weights stacked: h = act(b + (h * z) W)."""

    def __init__(self, networks: Sequence[StochasticNetwork]) -> None:
        super().__init__(networks)
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        self.steps: list[nn.Module | int] = []  # an activation, or the number of a layer
        self.drops: list[bool] = []  # whether any member drops before that layer
        self.common: list[float | None] = []  # with what probability, where all drop alike
        self.ahead: list[Tensor] = []  # what compiled passes compare with the probabilities
        pending = torch.zeros(self.size)
        embeddings = []
        for modules in zip(*(n.body for n in networks), strict=True):
            if isinstance(modules[0], PeriodicEmbedding):
                embeddings.append(StackedEmbedding(modules))
                continue
            # The layer itself drops its input or a Dropout before it does, never both.
            pending = pending + torch.tensor([_drop_prob(module) for module in modules])
            if isinstance(modules[0], nn.Linear):
                self._add_layer(modules, pending)
                pending = torch.zeros(self.size)
            elif not isinstance(modules[0], _DropoutNd):
                self.steps.append(modules[0])
        head = networks[0].head
        self.head = type(head)(head.outputs, members=self.size)
        for name, parameter in self.head.named_parameters():
            own = [network.head.get_parameter(name).detach() for network in networks]
            parameter.data = torch.stack(own)[:, None]
        self.embedding = embeddings[0] if embeddings else None

    @property
    def numbers(self) -> int:
        return self.width if self.embedding is None else max(self.width, self.embedding.waves)

    def _add_layer(self, modules: Sequence[nn.Linear], drop_prob: Tensor) -> None:
        keep_prob = (1 - drop_prob).view(-1, 1, 1)
        first = drop_prob[0].item()
        self.common.append(first if bool((drop_prob == first).all()) else None)
        threshold = ((keep_prob * 65536).round() - 32769).to(torch.int16)
        self.register_buffer(f"keep_prob_{len(self.drops)}", keep_prob, persistent=False)
        self.register_buffer(f"threshold_{len(self.drops)}", threshold, persistent=False)
        self.steps.append(len(self.drops))
        self.drops.append(bool(drop_prob.any()))
        self.weights.append(torch.stack([m.weight.detach().T for m in modules]).contiguous())
        self.biases.append(torch.stack([m.bias.detach()[None] for m in modules]))

    def keep_prob(self, layer: int) -> Tensor:
        """Return the probability with which each member keeps an input of a layer, (K, 1, 1)."""
        found: Tensor = getattr(self, f"keep_prob_{layer}")
        return found

    def threshold(self, layer: int) -> Tensor:
        """Return the number that 16 random bits do not exceed with the probability to keep."""
        found: Tensor = getattr(self, f"threshold_{layer}")
        return found

    def forward(self, x: Tensor, each: bool = False) -> Params:
        h = x if each else x.expand(self.size, *x.shape)
        if self.embedding is not None:
            h = self.embedding(h)
        for step in self.steps:
            h = step(h) if isinstance(step, nn.Module) else self._layer(h, step)
        params: Params = self.head(h)
        return params

    def draw_ahead(self, rows: int) -> None:
        """Draw the uniform numbers of the next pass: a compiled one knows no generator."""
        if not self.ahead:
            pairs = zip(self.weights, self.drops, strict=True)
            self.ahead = [w.new_empty(self.size, rows, w.shape[1] * drops) for w, drops in pairs]
        for numbers in self.ahead:
            numbers.uniform_(generator=_torch.current(numbers.device))

    def _layer(self, h: Tensor, layer: int) -> Tensor:
        h = self._drop(h, layer)
        weight: Tensor = self.weights[layer]
        bias: Tensor = self.biases[layer]
        if self.size == 1:
            return torch.addmm(bias.view(-1), h.squeeze(0), weight.squeeze(0)).unsqueeze(0)
        if torch.compiler.is_compiling():  # baddbmm would first copy the bias over all rows
            return torch.bmm(h, weight) + bias
        return torch.baddbmm(bias, h, weight)

    def _drop(self, h: Tensor, layer: int) -> Tensor:
        if not (self.training and self.drops[layer]):
            return h
        keep_prob = self.keep_prob(layer)
        if torch.compiler.is_compiling():
            return torch.where(self.ahead[layer] < keep_prob, h / keep_prob, 0.0)
        common = self.common[layer]
        if h.is_cuda and common is not None:  # torch's own, which a GPU runs as one kernel
            return dropped(h, common)
        # Random numbers are what dropout costs: one 64-bit draw serves four entries. A probability
        # of 1 is exact, others to 2^-16. All of this stays in one type a line, which is vectorised.
        bits = torch.empty((h.numel() + 3) // 4, dtype=torch.int64, device=h.device)
        bits.random_(-(2**63), None, generator=_torch.current(h.device))
        kept = kept_entries(bits, self.threshold(layer), h.shape)
        return h * kept.to(h.dtype).div_(keep_prob)

    def clip_gradients(self, gradients: list[Tensor], limit: float) -> None:
        alone = self.size == 1 and not torch.compiler.is_compiling()
        if alone:
            norms = torch.stack(torch._foreach_norm(gradients)).norm().view(1)
        else:
            each = [torch.linalg.vector_norm(g.flatten(1), dim=1) for g in gradients]
            norms = torch.stack(each).norm(dim=0)
        if norms.device.type == "cpu" and bool((norms <= limit).all()):
            return
        factors = (limit / (norms + 1e-6)).clamp(max=1.0)
        if alone:
            torch._foreach_mul_(gradients, factors.view(()))
            return
        for gradient in gradients:
            gradient.mul_(factors.view(-1, *[1] * (gradient.ndim - 1)))

    def decay_weights(self, factors: Tensor) -> None:
        for weight in self.weights:
            weight.data.mul_(factors.view(-1, 1, 1))
        if self.embedding is not None:
            self.embedding.weight.data.mul_(factors.view(-1, 1, 1, 1))

    def keep(self, members: Tensor) -> None:
        for name, tensor in self.state_dict().items():
            kept = self.kept.setdefault(name, tensor.clone())
            kept[members] = tensor[members]

    def _fill(self, mould: StochasticNetwork, member: int) -> None:
        linear = [m for m in mould.body.children() if isinstance(m, nn.Linear)]
        for number, layer in enumerate(linear):
            layer.weight.copy_(self.kept[f"weights.{number}"][member].T)
            layer.bias.copy_(self.kept[f"biases.{number}"][member, 0])
        for name, parameter in mould.head.named_parameters():
            parameter.copy_(self.kept[f"head.{name}"][member, 0])
        embedding = next(iter(mould.body.children()), None)
        if isinstance(embedding, PeriodicEmbedding):
            for name, parameter in embedding.named_parameters():
                parameter.copy_(self.kept[f"embedding.{name}"][member].view_as(parameter))


class ModuleBank(Bank):
    """K copies of any converted network; their outputs are stacked."""

    def __init__(self, networks: Sequence[StochasticNetwork]) -> None:
        super().__init__(networks)
        self.members = nn.ModuleList(copy.deepcopy(network) for network in networks)

    def forward(self, x: Tensor, each: bool = False) -> Params:
        outputs = [m(x[k] if each else x) for k, m in enumerate(self.members)]
        params: Params = type(outputs[0])(*map(torch.stack, zip(*outputs, strict=True)))
        return params

    def clip_gradients(self, gradients: list[Tensor], limit: float) -> None:
        each = len(gradients) // self.size
        for start in range(0, len(gradients), each):
            own = gradients[start : start + each]
            norm = torch.stack(torch._foreach_norm(own)).norm()
            torch._foreach_mul_(own, (limit / (norm + 1e-6)).clamp(max=1.0))

    def decay_weights(self, factors: Tensor) -> None:
        for member, factor in zip(self.members, factors, strict=True):
            for parameter in member.parameters():
                if parameter.ndim > 1 and parameter.requires_grad:
                    parameter.data.mul_(factor)

    def keep(self, members: Tensor) -> None:
        chosen = {f"members.{k}." for k in members.nonzero().flatten().tolist()}
        for name, tensor in self.state_dict().items():
            kept = self.kept.setdefault(name, tensor.clone())
            if any(name.startswith(prefix) for prefix in chosen):
                kept.copy_(tensor)

    def _fill(self, mould: StochasticNetwork, member: int) -> None:
        prefix = f"members.{member}."
        mould.load_state_dict(
            {n.removeprefix(prefix): t for n, t in self.kept.items() if n.startswith(prefix)}
        )


def kept_entries(bits: Tensor, threshold: Tensor, shape: torch.Size) -> Tensor:
    """Return 1 where an entry is kept, else 0, from 64-bit draws, each of which serves four."""
    entries = bits.view(torch.int16)[: shape.numel()].view(shape)
    return entries.le_(threshold)


def _is_dense(network: StochasticNetwork) -> bool:
    """Tell whether a network is a flat Sequential of converted layers, dropouts and activations."""
    return isinstance(network.body, nn.Sequential) and all(
        isinstance(m, DropoutLinear)
        or type(m) in (nn.Dropout, DropoutEntries, *ELEMENTWISE)
        or (k == 0 and type(m) is PeriodicEmbedding)
        for k, m in enumerate(network.body)
    )


def _drop_prob(module: nn.Module) -> float:
    return float(getattr(module, "drop_prob", getattr(module, "p", 0.0)))


# --------------------------------------------------------------------------------------------------
# Dropout masks for many steps at once
# --------------------------------------------------------------------------------------------------

ENTRIES = 200_000  # drawn at once, unless one step takes more


class Masks:
    """Entries 1 / keep with the probability to keep, else 0, before the layers that drop.

    Steps share a draw in blocks, each with its own seed, so that the masks of a step depend on
    its number alone.
    """

    def __init__(
        self,
        bank: DenseBank,
        rows: int,
        widths: Sequence[int],
        seed: int,
        entries: int = ENTRIES,
    ) -> None:
        self._seed = seed
        sizes = [bank.size * rows * width for width in widths]
        step = sum(size for size, drops in zip(sizes, bank.drops, strict=True) if drops)
        self.block = max(1, entries // max(1, step))
        self._drawn: list[tuple[Tensor, Tensor, Tensor]] = []  # masks, threshold, keep_prob
        columns: list[Sequence[Tensor | None]] = []
        for layer, width in enumerate(widths):
            if not bank.drops[layer]:
                columns.append([None] * self.block)
                continue
            masks = torch.empty(self.block, bank.size, rows, width)
            self._drawn.append((masks, bank.threshold(layer), bank.keep_prob(layer)))
            columns.append(masks.unbind())
        self._steps = list(zip(*columns, strict=True))
        self._present = -1

    def of(self, step: int) -> tuple[Tensor | None, ...]:
        """Return one mask for each layer; None where nothing is dropped."""
        block, place = divmod(step, self.block)
        if block != self._present:
            self._draw(block)
        return self._steps[place]

    def _draw(self, block: int) -> None:
        # Random numbers are what dropout costs, and this generator is faster than torch's.
        rng = np.random.Generator(np.random.SFC64((self._seed, block)))
        for masks, threshold, keep_prob in self._drawn:
            draws = (masks.numel() + 3) // 4
            bits = rng.integers(-(2**63), 2**63 - 1, draws, dtype=np.int64, endpoint=True)
            kept = kept_entries(torch.from_numpy(bits), threshold, masks.shape)
            masks.copy_(kept).div_(keep_prob)
        self._present = block
