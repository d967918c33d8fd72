"""A step of plain fully-connected networks on a CPU, with the gradient written out.

A small network spends its time in asking for operations: torch's profiler counts 350 in a step of
`Step` on one hidden layer, most of them autograd's, and 100 here. With a_l = b_l + h_l W_l and
h_(l+1) = z_(l+1) relu(a_l) for masks z of 0 and 1 / keep, and d = d loss / d a_L from the head:

    d loss / d W_l = h_l^T d,    d loss / d b_l = sum of d over rows,    d <- z_l [h_l > 0] d W_l^T

z_l [h_l > 0] is 1 / keep where h_l > 0 and 0 elsewhere, so masks are not needed again. What
`embedding_step` makes of the inputs may stand before the first layer.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from rdeepsense.heads import Head
from rdeepsense.scoring import ScoringRule
from rdeepsense.training.bank import Bank, DenseBank
from rdeepsense.training.embedding_step import EmbeddingStep
from rdeepsense.training.masks import Masks
from rdeepsense.training.peers import ALONE, Peers
from rdeepsense.training.schedule import Rows, Schedule
from rdeepsense.training.step import BETA1, BETA2, CLIP, EPSILON, Step

_where_positive = torch.ops.aten.threshold_backward.grad_input


def step_for(
    bank: Bank,
    rule: ScoringRule,
    weight_decay: Sequence[float],
    rows: Rows,
    schedule: Schedule,
    peers: Peers = ALONE,
) -> Step:
    """Return the fastest step that can train this bank on these rows."""
    if (
        isinstance(bank, DenseBank)
        and rows.x.device.type == "cpu"
        and rows.x.ndim == 2
        and _is_relu_network(bank)
        and type(bank.head).gradient is not Head.gradient
        and isinstance(rule.alpha, Tensor)
        and all(parameter.requires_grad for parameter in bank.parameters())
        and len(set(weight_decay)) == 1
        and not schedule.adversarial
    ):
        return DenseStep(bank, rule, weight_decay, rows, schedule, peers)
    return Step(bank, rule, weight_decay, rows, schedule, peers)


class DenseStep(Step):
    """A `Step` on a CPU, for `DenseBank`s of ReLU layers alone.

    The weights lie in one piece of memory and all other parameters in another, so that AdamW takes
    two calls. Masks are drawn for many steps at once.
    """

    bank: DenseBank

    def __init__(
        self,
        bank: DenseBank,
        rule: ScoringRule,
        weight_decay: Sequence[float],
        rows: Rows,
        schedule: Schedule,
        peers: Peers = ALONE,
    ) -> None:
        super().__init__(bank, rule, weight_decay, rows, schedule, peers)
        members, size = bank.size, self.order.shape[1]
        self._lr: list[float] = self.rates.tolist()
        self._decay = weight_decay[0]
        self._step = self._place = 0
        self._batches: Sequence[Tensor] = ()
        self._weights = [weight.data for weight in bank.weights]
        self._biases = [bias.data for bias in bank.biases]
        self._x = rows.x.new_empty(size, rows.x.shape[1])
        self._embedding: EmbeddingStep | None = None
        if bank.embedding is not None:
            self._embedding = EmbeddingStep(bank.embedding, size, self._of_embedding)
        widths = [weight.shape[1] for weight in self._weights]
        self._masks = Masks(bank, size, widths, schedule.seed)
        self._inverse = [1 / bank.keep_prob(layer) for layer in range(len(widths))]
        # What each layer reads but the first, which reads the batch, and its gradient.
        shapes = [(members, size, width) for width in widths[1:]]
        self._hidden = [rows.x.new_empty(shape) for shape in shapes]
        self._back = [rows.x.new_empty(shape) for shape in shapes]
        self._shares = rule.shares(size * bank.head.entries)

    def _parameters(self) -> list[Tensor]:
        """Lay weights and other parameters out in two rows; those of the bank become views."""
        bank = self.bank
        assert isinstance(bank, DenseBank)
        weights = list(bank.weights)
        others = [*bank.biases, *bank.head.parameters()]
        layers = len(weights)
        if bank.embedding is not None:
            weights.append(bank.embedding.weight)
            others += [bank.embedding.frequency, bank.embedding.bias]
        flat = [_in_a_row(weights), _in_a_row(others)]
        self._gradient = torch.zeros_like(torch.cat(flat))
        self._halves = self._gradient.split([len(part) for part in flat])
        self._gradients = _views(self._gradient, weights + others)
        self._of_embedding: list[Tensor] = []
        if bank.embedding is not None:
            *of_others, of_frequency, of_bias = self._gradients
            self._of_embedding = [of_frequency, of_others.pop(layers), of_bias]
            self._gradients = of_others
        sizes = [parameter.numel() for parameter in weights + others]
        self._of_members = [part.view(bank.size, -1) for part in self._gradient.split(sizes)]
        return flat

    def go_to(self, step: int) -> None:
        self._step = step

    def shuffle(self, window: int, position: int) -> None:
        super().shuffle(window, position)
        self._batches, self._place = self.order.unbind(), position

    @torch.no_grad()
    def __call__(self) -> None:
        index = self._batches[self._place]
        x = torch.index_select(self.rows.x, 0, index, out=self._x)
        y = self.rows.y.index_select(0, index)
        shares = self._shares
        if self.rows.weight is not None:
            weight = self.rows.weight.index_select(-1, index).unsqueeze(-1)
            shares = (shares[0] * weight, shares[1] * weight)
        inputs, raw = self._forward(x)
        gradient, *own = self.bank.head.gradient(raw, y, *shares, self.rule.beta)
        for place, value in zip(self._gradients[2 * len(inputs) :], own, strict=True):
            place.copy_(value)
        self._backward(inputs, gradient)
        self.peers.average(self._gradient)
        self._update()
        self._step += 1
        self._place += 1

    def _forward(self, x: Tensor) -> tuple[list[Tensor], Tensor]:
        """Return what every layer reads, and the output of the last one."""
        masks = self._masks.of(self._step)
        embedding = self._embedding
        h = x.expand(self.bank.size, *x.shape) if embedding is None else embedding.forward(x)
        if masks[0] is not None:
            h = h * masks[0]
        inputs = [h]
        for layer, into in enumerate(self._hidden):
            torch.baddbmm(self._biases[layer], h, self._weights[layer], out=into).relu_()
            mask = masks[layer + 1]
            h = into if mask is None else into.mul_(mask)
            inputs.append(h)
        return inputs, torch.baddbmm(self._biases[-1], h, self._weights[-1])

    def _backward(self, inputs: list[Tensor], d: Tensor) -> None:
        """Fill the gradients of weights and biases; d is that of the last layer's numbers."""
        layers = len(inputs)
        for layer in range(layers - 1, -1, -1):
            h = inputs[layer]
            into = self._gradients[layer]
            if _is_narrow(into):
                torch.bmm(d.mT, h, out=into.mT)
            else:
                torch.bmm(h.mT, d, out=into)
            torch.sum(d, 1, keepdim=True, out=self._gradients[layers + layer])
            if self.bank.drops[layer] and (layer or self._embedding is not None):
                d = d * self._inverse[layer]
            if layer:
                below = torch.bmm(d, self._weights[layer].mT, out=self._back[layer - 1])
                d = _where_positive(below, h, 0, grad_input=below)
        if self._embedding is not None:
            self._embedding.backward(inputs[0], d, self._weights[0])

    def _update(self) -> None:
        """Clip, and AdamW: the biases do not decay."""
        lr = self._lr[self._step]
        count = torch.tensor(self._step + 1.0)
        # Where all members together are not above the limit, none is; of many that is rare.
        if self.bank.size > 1 or not float(torch.linalg.vector_norm(self._gradient)) <= CLIP:
            self.bank.clip_gradients(self._of_members, CLIP)
        for part, decay in enumerate((self._decay, 0.0)):
            torch._fused_adamw_(
                [self.parameters[part]],
                [self._halves[part]],
                [self.first[part]],
                [self.second[part]],
                [],
                [count],
                lr=lr,
                beta1=BETA1,
                beta2=BETA2,
                weight_decay=decay,
                eps=EPSILON,
                amsgrad=False,
                maximize=False,
            )


def _is_relu_network(bank: DenseBank) -> bool:
    """Tell whether a ReLU follows every layer but the last, and nothing else."""
    last = len(bank.weights) - 1
    expected = [kind for layer in range(last) for kind in (layer, nn.ReLU)] + [last]
    return [s if isinstance(s, int) else type(s) for s in bank.steps] == expected


def _in_a_row(parameters: Sequence[Tensor]) -> Tensor:
    """Return one tensor that the parameters are views of from now on."""
    flat = parameters[0].new_empty(sum(parameter.numel() for parameter in parameters))
    for parameter, view in zip(parameters, _views(flat, parameters), strict=True):
        parameter.data = view.copy_(parameter.detach())
    return flat


def _views(flat: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """Return parts of a row in these shapes; matrices taller than wide lie there transposed.

    Products with a few columns, as for a mean and a variance, are several times faster this way.
    """
    parts = flat.split([parameter.numel() for parameter in like])
    return [
        part.view(p.mT.shape).mT if _is_narrow(p) else part.view(p.shape)
        for part, p in zip(parts, like, strict=True)
    ]


def _is_narrow(matrix: Tensor) -> bool:
    return matrix.shape[-1] < matrix.shape[-2]
