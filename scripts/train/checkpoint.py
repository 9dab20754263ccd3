"""A run's folder: `state.pt` has everything to go on from, `tokenizer.json` the vocabulary, and `log.json` the losses.

`write_parts` also writes the weights alone, for a machine whose disk is lost: 4 bits for a weight of a product and
bfloat16 for the embedding, in files of less than 16 MB. The ternary weights are the same
after `read_parts`, but for a few that lie at half the scale, where the rounding changes. How far a weight is from its
next value is known to 1/8 of the scale, which the optimiser makes good.
"""

import json
from pathlib import Path

import numpy as np
import torch

from model import BitNet, Config

MAX_PART_BYTES = 15_000_000
# The width of a level, as a share of the scale. Half the scale, where the rounding changes, is an edge of levels.
LEVEL = 0.25


def to_levels(weight):
    """(bytes with two levels each, the scale) of a matrix whose weights are rounded by BitLinear."""
    scale = float(weight.abs().mean().clamp(min=1e-5))
    levels = (torch.floor(weight / scale / LEVEL).clamp(-8, 7) + 8).to(torch.uint8).flatten()
    return (levels[0::2] << 4 | levels[1::2]).numpy(), scale


def of_levels(packed, scale, shape):
    packed = torch.from_numpy(packed)
    levels = torch.stack([packed >> 4, packed & 15], 1).float().view(shape)
    weight = (levels - 8 + 0.5) * LEVEL
    # The outer levels have no end. Their weights get what the mean of all lacks, so the last factor stays near 1 and
    # changes no code.
    outer = (levels == 0) | (levels == 15)
    if outer.any():
        lacking = weight.numel() - weight[~outer].abs().sum()
        weight[outer] = weight[outer].sign() * (lacking / outer.sum()).clamp(min=7 * LEVEL)
    return weight * (scale / weight.abs().mean())


def write_parts(model, folder):
    """Writes `part-0.npz` and so on into a folder; returns their paths."""
    arrays = {}
    for name, value in model.state_dict().items():
        value = value.detach().float().cpu()
        if value.ndim == 1:
            arrays[name] = value.numpy()
        elif name == "token_embd.weight":
            arrays[name] = value.bfloat16().view(torch.int16).numpy()
        else:
            arrays[name], scale = to_levels(value)
            arrays[f"{name}.scale"] = np.float32(scale)
    parts = [{"config": np.array(json.dumps(model.config.dict()))}]
    for name, array in arrays.items():
        if sum(a.nbytes for a in parts[-1].values()) + array.nbytes > MAX_PART_BYTES:
            parts.append({})
        parts[-1][name] = array
    paths = [Path(folder) / f"part-{n}.npz" for n in range(len(parts))]
    for path, part in zip(paths, parts):
        np.savez(path, **part)
    return paths


def read_parts(folder):
    """The model of a folder with `part-*.npz`."""
    arrays = {}
    for path in sorted(Path(folder).glob("part-*.npz")):
        arrays.update(np.load(path))
    if "config" not in arrays:
        raise ValueError(f"{folder} has no part-0.npz")
    model = BitNet(Config(**json.loads(str(arrays["config"]))))
    state = {}
    for name, value in model.state_dict().items():
        if name not in arrays:
            raise ValueError(f"The parts in {folder} lack {name}: one is missing")
        array = arrays[name]
        if f"{name}.scale" in arrays:
            state[name] = of_levels(array, float(arrays[f"{name}.scale"]), value.shape)
        elif array.dtype == np.int16:
            state[name] = torch.from_numpy(array).view(torch.bfloat16).float()
        else:
            state[name] = torch.from_numpy(array)
    model.load_state_dict(state)
    return model


def write_state(folder, model, optimiser):
    path = Path(folder) / "state.pt"
    state = {"config": model.config.dict(), "model": model.state_dict(), "optimiser": optimiser.state_dict()}
    # A run that is ended while it writes leaves the state before.
    torch.save(state, path.with_suffix(".new"))
    path.with_suffix(".new").replace(path)


def read_state(folder, device="cpu"):
    return torch.load(Path(folder) / "state.pt", map_location=device, weights_only=True)


def read_model(folder):
    """The model of a run's folder, of its state or else of its parts."""
    if not (Path(folder) / "state.pt").exists():
        return read_parts(folder)
    state = read_state(folder)
    model = BitNet(Config(**state["config"]))
    model.load_state_dict(state["model"])
    return model
