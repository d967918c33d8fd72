"""Writing trained networks to a model file and reading them back."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from rdeepsense import model_file
from rdeepsense.dropout import convert
from rdeepsense.errors import InputError, ModelFileError
from rdeepsense.fitting.candidates import Candidate
from rdeepsense.fitting.fitted import Networks
from rdeepsense.fitting.passes import Passes
from rdeepsense.model_file import Header, Tensors
from rdeepsense.networks import Architecture, Own, architecture_named, name_of

# What older files call things, by the class they belong to.
RENAMED = {"DeepSense": {"turn": "rotation_std"}}


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
    """Build the networks that a file holds."""
    saved = header["architecture"]
    architecture = _architecture(saved, network)
    candidate = Candidate(
        saved["likelihood"], saved["alpha"], model_file.tupled(saved["drop_prob"])
    )
    members = []
    for number in range(saved["members"]):
        built = architecture.build(shape, saved["outputs"], 0)
        converted = convert(
            built,
            likelihood=candidate.likelihood,
            drop_prob=candidate.drop_prob,
            input_drop_prob=saved["input_drop_prob"],
            example=torch.zeros(2, *shape).to(next(built.parameters())),
        )
        state = model_file.under(f"network.{number}", tensors)
        try:
            converted.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in state.items()})
        except RuntimeError as error:
            raise ModelFileError(f"the network does not fit the file's weights: {error}") from error
        members.append(converted.eval())
    return Networks(tuple(members), candidate, architecture, saved["input_drop_prob"], passes)


def _architecture(saved: dict[str, Any], network: nn.Module | None) -> Architecture:
    name, arguments = saved["class"], saved.get("arguments")
    if name == "dense":  # as files had it before architectures had classes
        name, arguments = "Dense", {"hidden": saved["hidden"]}
    if arguments is None:
        if network is None:
            raise InputError(
                f"this model was trained on a network of your own ({name}); "
                "load it with rds.load(path, network=...), giving a new instance"
            )
        return Own(network)
    if network is not None:
        raise InputError("this model has layers of its own; leave out network=")
    known = architecture_named(name)
    if known is None:
        raise ModelFileError(
            f"the file's architecture {name!r} is unknown here; if it is your own, make it known "
            "with rdeepsense.networks.register before loading"
        )
    renamed = RENAMED.get(name, {})
    return known(**{renamed.get(k, k): model_file.tupled(v) for k, v in arguments.items()})
