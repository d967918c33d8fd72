"""One training step of a bank: autograd, closed form for dense networks, or a CUDA graph."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from rdeepsense import _torch
from rdeepsense._torch import tensor_cores
from rdeepsense.guard import EMBEDDING_REACH
from rdeepsense.heads import Head
from rdeepsense.scoring import ScoringRule
from rdeepsense.training.bank import Bank, DenseBank, Masks, StackedEmbedding
from rdeepsense.training.schedule import Rows, Schedule
from rdeepsense.training.workers import ALONE, WorkerGroup, statistics_of

# --------------------------------------------------------------------------------------------------
# One training step as a function of tensors, as CUDA graphs require
# --------------------------------------------------------------------------------------------------

CLIP = 5.0
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class Step:
    """Gather, forward, scoring rule, backward, the mean over peers, clipping, AdamW.

    Whatever changes from step to step is a tensor on the device: the order of the rows, the
    position in it, the number of steps taken (which sets the learning rate) and Adam's moments.
    """

    def __init__(
        self,
        bank: Bank,
        rule: ScoringRule,
        weight_decay: Sequence[float],
        rows: Rows,
        schedule: Schedule,
        peers: WorkerGroup = ALONE,
    ) -> None:
        device = rows.x.device
        self.bank, self.rule, self.rows, self.schedule = bank, rule, rows, schedule
        self.peers, self._statistics = peers, statistics_of(bank)
        self.device = device
        size = min(schedule.batch_size, len(rows))
        self.order = torch.arange(len(rows) // size * size, device=device).view(-1, size)
        self.position = torch.zeros(1, dtype=torch.int64, device=device)
        self.taken = torch.zeros(1, dtype=torch.int64, device=device)
        self.rates = schedule.learning_rates().to(device)
        self.weight_decay = torch.tensor(list(weight_decay), device=device)
        self.parameters = self._parameters()
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) for p in self.parameters]

    def _parameters(self) -> list[Tensor]:
        return [p for p in self.bank.parameters() if p.requires_grad]

    def go_to(self, step: int) -> None:
        """Take up a run after this many steps."""
        self.taken.fill_(step)

    def __call__(self) -> None:
        self.bank.train()
        gradients = torch.autograd.grad(
            self.loss(), self.parameters, allow_unused=True, materialize_grads=True
        )
        self.update(self.peers.averaged(gradients, self._statistics))

    def shuffle(self, window: int, position: int) -> None:
        """Draw a new order of the rows, without replacement, an odd last batch left out."""
        generator = torch.Generator(self.device)
        generator.manual_seed(self.schedule.seed * 1_000_003 + window)
        order = torch.randperm(len(self.rows), generator=generator, device=self.device)
        self.order.copy_(order[: self.order.numel()].view_as(self.order))
        self.position.fill_(position)

    def loss(self) -> Tensor:
        """Return the sum of the members' losses on the batch at the present position."""
        index = self.order.index_select(0, self.position)[0]
        x, y = self.rows.x.index_select(0, index), self.rows.y.index_select(0, index)
        weight = self.rows.weight
        if weight is not None:
            weight = weight.index_select(-1, index)
        loss = self.rule(self.bank(x), y, weight)
        if self.schedule.adversarial:
            loss = loss + self.rule(self.bank(self._attacked(x, y), each=True), y, weight)
        return loss.sum()

    def _attacked(self, x: Tensor, y: Tensor) -> Tensor:
        """Return x + eps sign(d loss / d x) of each member (fast gradient sign method)."""
        own = x.expand(self.bank.size, *x.shape).clone().requires_grad_()
        loss = self.rule(self.bank(own, each=True), y).sum()
        (gradient,) = torch.autograd.grad(loss, own)
        return own.detach() + self.schedule.adversarial * gradient.sign()

    @torch.no_grad()
    def update(self, gradients: list[Tensor]) -> None:
        """Clip each member's gradient, decay its weights, and take Adam's step."""
        lr = self.rates.index_select(0, self.taken)
        self.taken.add_(1)
        self.bank.clip_gradients(gradients, CLIP)
        self.bank.decay_weights(1 - lr * self.weight_decay)
        if torch.compiler.is_compiling():
            self._adam(gradients, lr)
        else:
            self._fused_adam(gradients, lr)
        self.position.add_(1)

    def _fused_adam(self, gradients: list[Tensor], lr: Tensor) -> None:
        torch._fused_adam_(
            self.parameters,
            gradients,
            self.first,
            self.second,
            [],
            [self.taken.float().view(())] * len(gradients),
            lr=lr.view(()),
            beta1=BETA1,
            beta2=BETA2,
            weight_decay=0.0,
            eps=EPSILON,
            amsgrad=False,
            maximize=False,
        )

    def _adam(self, gradients: list[Tensor], lr: Tensor) -> None:
        """Take W <- W - lr m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps), which compilers fuse."""
        t = self.taken.float()
        rate, root = lr / (1 - BETA1**t), (1 - BETA2**t).sqrt()
        moments = zip(self.first, self.second, strict=True)
        for parameter, gradient, (m, v) in zip(self.parameters, gradients, moments, strict=True):
            m.lerp_(gradient, 1 - BETA1)
            v.lerp_(gradient * gradient, 1 - BETA2)
            parameter.sub_(rate * m / (v.sqrt() / root + EPSILON))


# --------------------------------------------------------------------------------------------------
# Periodic embeddings with an explicit gradient, for `DenseStep`
#
# With a = 2 pi c z of each input and frequency, s = [sin(a), cos(a)], e = relu(W s + b), and g the
# gradient of e where e > 0, else 0:
#
#     d loss / d b = sum of g over rows,   d loss / d W = g s^T,   d = W^T g,
#     d loss / d c = sum over rows of 2 pi z (d_sin cos(a) - d_cos sin(a))
#
# Rows are the last axis throughout, as in `StackedEmbedding`. Whole periods are not taken off the
# angles: training rows have few of them, and single bits do not matter here.
# --------------------------------------------------------------------------------------------------

TOGETHER = 1 << 17  # numbers of waves


class _Part(NamedTuple):
    """What belongs to a few members, as views; sines and cosines are the halves of waves."""

    frequency: Tensor
    weight: Tensor
    waves: Tensor
    sine: Tensor
    cosine: Tensor
    angles: Tensor
    of_waves: Tensor
    of_sine: Tensor
    of_cosine: Tensor
    of_frequency: Tensor
    of_weight: Tensor
    e: Tensor
    of_e: Tensor


class EmbeddingStep:
    """Forward and backward on one batch after the other, in memory that is kept.

    A few members at a time, so that their waves stay in the processor's cache.
    """

    def __init__(self, embedding: StackedEmbedding, rows: int, gradients: list[Tensor]) -> None:
        """Prepare for batches of so many rows; gradients are those of c, W and b, to be filled."""
        members, inputs, width, waves = embedding.weight.shape
        self._inputs = inputs
        self._bias, self._of_bias = embedding.bias.data.flatten(1, 2), gradients[2].flatten(1, 2)
        new = embedding.weight.data.new_empty
        self._read = new(members, inputs * (1 + width), rows)
        self._near = new(inputs, 1, rows)
        self._e, self._back = (new(members, inputs * width, rows) for _ in range(2))
        each = max(1, TOGETHER // (inputs * waves * rows))
        shape = (inputs, 2, waves // 2, rows)
        angles, of_waves = new(each, inputs, waves // 2, rows), new(each, *shape)
        every = new(members, *shape)
        self._parts = []
        for start in range(0, members, each):
            own = slice(start, start + each)
            here, back = every[own], of_waves[: len(every[own])]
            part = _Part(
                frequency=embedding.frequency.data[own],
                weight=embedding.weight.data[own].flatten(0, 1),
                waves=here.flatten(2, 3).flatten(0, 1),
                sine=here[:, :, 0],
                cosine=here[:, :, 1],
                angles=angles[: len(here)],
                of_waves=back.flatten(2, 3).flatten(0, 1),
                of_sine=back[:, :, 0],
                of_cosine=back[:, :, 1],
                of_frequency=gradients[0][own],
                of_weight=gradients[1][own].flatten(0, 1),
                e=self._e[own].view(-1, width, rows),
                of_e=self._back[own].view(-1, width, rows),
            )
            self._parts.append(part)

    def forward(self, x: Tensor) -> Tensor:
        """Return what the first layer reads of a batch (rows, inputs): (K, rows, numbers)."""
        by_input, near = x.T, self._near
        torch.clamp(by_input.unsqueeze(1), -EMBEDDING_REACH, EMBEDDING_REACH, out=near)
        near.mul_(2 * math.pi)
        for part in self._parts:
            angles = torch.mul(part.frequency, near, out=part.angles)
            torch.sin(angles, out=part.sine)
            torch.cos(angles, out=part.cosine)
            torch.bmm(part.weight, part.waves, out=part.e)
        self._read[:, : self._inputs] = by_input
        torch.add(self._e, self._bias, out=self._read[:, self._inputs :]).relu_()
        return self._read.mT

    def backward(self, h: Tensor, d: Tensor, weight: Tensor) -> None:
        """Fill the gradients; h is what the first layer read, d the gradient of its sums.

        `weight` is that layer's. Where inputs are dropped, d is divided by the keep probability.
        """
        e, back = h.mT[:, self._inputs :], self._back
        torch.bmm(weight[:, self._inputs :], d.mT, out=back)
        _where_positive(back, e, 0, grad_input=back)
        torch.sum(back, 2, keepdim=True, out=self._of_bias)
        for part in self._parts:
            torch.bmm(part.of_e, part.waves.mT, out=part.of_weight)
            torch.bmm(part.weight.mT, part.of_e, out=part.of_waves)
            of_angles = torch.mul(part.of_sine, part.cosine, out=part.angles)
            of_angles.addcmul_(part.of_cosine, part.sine, value=-1).mul_(self._near)
            torch.sum(of_angles, 3, keepdim=True, out=part.of_frequency)


# --------------------------------------------------------------------------------------------------
# A step of dense networks on a CPU, with an explicit gradient
#
# A small network spends its time in asking for operations: torch's profiler counts 350 in a step of
# `Step` on one hidden layer, most of them autograd's, and 100 here. With a_l = b_l + h_l W_l and
# h_(l+1) = z_(l+1) relu(a_l) for masks z of 0 and 1 / keep, and d = d loss / d a_L from the head:
#
#     d loss / d W_l = h_l^T d,   d loss / d b_l = sum of d over rows,    d <- z_l [h_l > 0] d W_l^T
#
# z_l [h_l > 0] is 1 / keep where h_l > 0 and 0 elsewhere, so masks are not needed again. What
# `EmbeddingStep` makes of the inputs may stand before the first layer.
# --------------------------------------------------------------------------------------------------

_where_positive = torch.ops.aten.threshold_backward.grad_input


def step_for(
    bank: Bank,
    rule: ScoringRule,
    weight_decay: Sequence[float],
    rows: Rows,
    schedule: Schedule,
    peers: WorkerGroup = ALONE,
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
        peers: WorkerGroup = ALONE,
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


# --------------------------------------------------------------------------------------------------
# A step on a GPU: a CUDA graph, compiled where that is faster
#
# A step of a small network is some hundred kernels of a few microseconds; asking for each from
# Python takes longer than running them. A recorded graph is asked for once. Compiling fuses the
# kernels between the matrix products as well; it takes seconds, so only a long training earns it
# back.
# --------------------------------------------------------------------------------------------------

WARM_UP = 3  # real steps, taken one by one before the recording
COMPILE_FROM = 50_000  # steps: 0.2 to 0.3 ms are saved in each, against 5 to 17 s of compiling


def accelerate(step: Step, steps: int, mode: str | None = None) -> Callable[[], None]:
    """Choose how to take a step on this device: `mode` "eager", "captured" or "compiled"."""
    if step.device.type != "cuda":
        return step
    if mode is None:
        plain = isinstance(step.bank, DenseBank) and not step.schedule.adversarial
        mode = "compiled" if plain and steps >= COMPILE_FROM else "captured"
    return _Eager(step) if mode == "eager" else _Captured(step, mode == "compiled")


class _Eager:
    """A step taken kernel by kernel."""

    def __init__(self, step: Step) -> None:
        self._step = step

    def __call__(self) -> None:
        with tensor_cores():
            self._step()


class _Captured:
    """A step that is recorded after a few, taken kernel by kernel, and replayed from then on."""

    def __init__(self, step: Step, compiled: bool) -> None:
        self._step, self._taken = step, 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._stream = torch.cuda.Stream(step.device)
        self._eager: _Eager | None = None
        self._compiled = compiled
        if compiled:
            # One code object serves all runs, and torch stops compiling it after a few.
            torch.compiler.reset()
            step.loss = torch.compile(step.loss, dynamic=False)  # type: ignore[method-assign]
            step.update = torch.compile(step.update, dynamic=False)  # type: ignore[method-assign]

    def __call__(self) -> None:
        if self._graph is not None:
            self._graph.replay()
        elif self._eager is not None:
            self._eager()
        elif self._taken < WARM_UP:
            self._taken += 1
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream), tensor_cores():
                self._run()
            torch.cuda.current_stream().wait_stream(self._stream)
        else:
            self._record()
            self()

    def _run(self) -> None:
        if self._compiled and isinstance(self._step.bank, DenseBank):
            self._step.bank.draw_ahead(self._step.order.shape[1])
        self._step()

    def _record(self) -> None:
        device = self._step.device
        number = torch.cuda.current_device() if device.index is None else device.index
        generators = [torch.cuda.default_generators[number]]  # every recording has this one
        graph = torch.cuda.CUDAGraph()
        own = _torch.current(device)
        if own is not None:
            generators.append(own)
            graph.register_generator_state(own)
        before = [generator.get_state() for generator in generators]
        # Other threads may use the GPU meanwhile.
        recording = torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local")
        try:
            with tensor_cores(), recording:
                self._run()
        except Exception as error:
            # A recording that broke off leaves the random numbers in recording mode.
            for generator, state in zip(generators, before, strict=True):
                generator.graphsafe_set_state(torch.Generator(device).graphsafe_get_state())
                generator.set_state(state)
            self._eager = _Eager(self._step)
            warnings.warn(
                "this network's training step cannot be recorded as a CUDA graph "
                f"({str(error).splitlines()[0]}); it is run kernel by kernel",
                stacklevel=2,
            )
        else:
            self._graph = graph
