"""Writing trained networks to a model file and reading them back."""

from __future__ import annotations

import math

import torch
from torch import nn

from rdeepsense.dropout import StochasticNetwork, convert
from rdeepsense.errors import InputError, RDeepSenseError
from rdeepsense.fitting.adapted_layout import check_adapted_size
from rdeepsense.fitting.candidates import Candidate
from rdeepsense.fitting.fitted import Networks
from rdeepsense.fitting.known_architecture import example_shape, known_architecture
from rdeepsense.fitting.last_hidden import hidden_size
from rdeepsense.fitting.passes import Passes
from rdeepsense.heads import head_named
from rdeepsense.link import Softmax
from rdeepsense.modelfile import tensors as model_file
from rdeepsense.modelfile.tensors import Header, Tensors
from rdeepsense.networks import Architecture, Own, name_of
from rdeepsense.networks.base import built
from rdeepsense.uncertainty.laplace import features_of


def write_networks(model: Networks, outputs: int, header: Header, tensors: Tensors) -> None:
    """Add the networks of a model to what its file will hold."""
    header["architecture"] = {
        "class": name_of(model.architecture),
        "arguments": model_file.plain(model.architecture.arguments()),
        "outputs": outputs,
        "members": len(model.members),
        "likelihood": model.candidate.likelihood,
        "alpha": model.candidate.alpha,
        "drop_prob": model.candidate.drop_prob,
        "input_drop_prob": float(model.input_drop_prob),
    }
    for number, network in enumerate(model.members):
        state = {name: value.cpu().numpy() for name, value in network.state_dict().items()}
        tensors |= model_file.named(f"network.{number}", state)


def read_networks(
    header: Header,
    tensors: Tensors,
    shape: tuple[int, ...],
    passes: Passes,
    network: nn.Module | None,
) -> Networks:
    """Build the networks that a file holds, and take their weights out of `tensors`."""
    saved = header["architecture"]
    candidate = Candidate(
        saved["likelihood"], saved["alpha"], model_file.tupled(saved["drop_prob"])
    )
    head = head_named(candidate.likelihood)
    if isinstance(head.link, Softmax) != ("classes" in header["target"]):
        raise InputError(
            f"architecture.likelihood = {candidate.likelihood!r} does not fit the target"
        )
    states = _states(saved["members"], tensors)
    architecture: Architecture = (
        Own(network) if network is not None else known_architecture(saved, shape, states[0])
    )
    members = []
    for state in states:
        member = _member(architecture, candidate, saved, shape)
        try:
            member.load_state_dict({name: torch.from_numpy(v) for name, v in state.items()})
        except RuntimeError as error:
            raise InputError(f"the network does not fit the file's weights: {error}") from error
        members.append(member.eval())
        _check_laplace(header, tensors, member, shape)
    if "adapted" in header:
        check_adapted_size(tensors, hidden_size(members[0]))
    return Networks(tuple(members), candidate, architecture, saved["input_drop_prob"], passes)


def check_own(saved: Header, network: nn.Module | None) -> None:
    """Refuse a network of the user's own where none is needed, and ask for one where it is."""
    own = saved.get("arguments") is None and saved["class"] != "dense"
    if own and network is None:
        raise InputError(
            f"this model was trained on a network of your own ({saved['class']:.60}); "
            "load it with rds.load(path, network=...), giving a new instance"
        )
    if not own and network is not None:
        raise InputError("this model has layers of its own; leave out network=")


def _states(members: int, tensors: Tensors) -> list[Tensors]:
    """Take the weights of each member out of the others."""
    names = [name for name in tensors if name.startswith("network.")]
    states: list[Tensors] = [{} for _ in range(members)]
    for name in names:
        number, _, own = name.removeprefix("network.").partition(".")
        if not number.isdecimal() or int(number) >= members or str(int(number)) != number:
            raise InputError(f"{name!r:.60} is no tensor of architecture.members = {members}")
        states[int(number)][own] = tensors.pop(name)
    for k, state in enumerate(states):
        if not state:
            raise InputError(f"lacks the tensors network.{k}, of architecture.members")
    return states


def _member(
    architecture: Architecture, candidate: Candidate, saved: Header, shape: tuple[int, ...]
) -> StochasticNetwork:
    plain = built(architecture, shape, saved["outputs"], 0, seed=0)
    example = torch.zeros(2, *example_shape(architecture, shape)).to(next(plain.parameters()))
    try:
        return convert(
            plain,
            likelihood=candidate.likelihood,
            drop_prob=candidate.drop_prob,
            input_drop_prob=saved["input_drop_prob"],
            example=example,
        )
    except RDeepSenseError:
        raise
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"the network does not take rows of shape {shape}: {error}") from error


def _check_laplace(
    header: Header, tensors: Tensors, member: StochasticNetwork, shape: tuple[int, ...]
) -> None:
    """Refuse a matrix of another size than what the last layer reads."""
    if "epistemic" not in header:
        return
    size, wanted = len(tensors["epistemic.root"]), features_of(member, math.prod(shape))
    if size != wanted:
        raise InputError(f"epistemic.root has {size} rows, the network asks for {wanted}")
