"""A step on a GPU: recorded once as a CUDA graph and replayed, compiled where that pays.

A step of a small network is some hundred kernels of a few microseconds; asking for each from Python
takes longer than running them. A recorded graph is asked for once. Compiling fuses the kernels
between the matrix products as well; it takes seconds, so only a long training earns it back.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch

from rdeepsense import randomness
from rdeepsense.process_wide import tensor_cores
from rdeepsense.training.bank import DenseBank
from rdeepsense.training.step import Step

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
        own = randomness.current(device)
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
