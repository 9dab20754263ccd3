"""Compares the logits of an exported file with PyTorch's.

    python check.py RUN model.gguf                     the engine against the model that was trained
    python check.py --adapter adapter.gguf BASE.gguf   PyTorch and the engine against NumPy, all with an adapter

The engine is the package in pkg/, on the CPU; `npm run build` makes it. A model with int8 activations has no exact
logits: an error of 1e-7 tips a rounding now and then, and one moves the logits by a hundredth. So the difference is
judged as a share of the logits' standard deviation, over many tokens. A mistake in a tensor or a scale is above 0.4.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import torch

import checkpoint
import gguf
import lora
from reference import Adapter, Reference
from tokenizer import Encoder

# How far the engine may be from PyTorch in float64: INT8_TOLERANCE, or TIMES_FLOAT32 times the distance of PyTorch's own
# float32. That distance is 0.01 to 0.02 with ten blocks.
INT8_TOLERANCE = 0.04
TIMES_FLOAT32 = 4
# Of two float64 programs.
EXACT_TOLERANCE = 1e-6
TEXTS = [
    "Once upon a time, there was a little boat that wanted to see the sea. One day the wind was strong.",
    "What do you know about clocks?",
    'A list: 1, 2, 3, "four" and {"five": 5}.\n\nThe end.',
]


def distance(found, wanted):
    """The root mean square of the difference, as a share of the standard deviation of the logits."""
    return float(np.sqrt(np.square(found - wanted).mean()) / wanted.std())


def engine_logits(path, lists, vocabulary, adapter=None):
    """The engine's logits after each of the lists of ids, with an adapter if there is one."""
    script = Path(__file__).parent / "logits.mjs"
    with tempfile.TemporaryDirectory() as folder:
        ids, out = Path(folder) / "ids.json", Path(folder) / "logits.f32"
        ids.write_text(json.dumps(lists))
        subprocess.run(["node", script, path, ids, out, *([adapter] if adapter else [])], check=True)
        return np.fromfile(out, "<f4").reshape(len(lists), vocabulary)


@torch.no_grad()
def torch_logits(model, ids):
    return model(torch.tensor([ids]))[0].double().numpy()


def prompts(encoder):
    return [encoder.prompt([{"role": "user", "content": text}]) for text in TEXTS]


def check_model(model, encoder, path):
    """Whether the engine computes the file as PyTorch computes the model that it was written from."""
    # The file rounds the embedding: that is no difference of the computation.
    model.token_embd.weight.data = torch.tensor(gguf.Reader(path).tensors["token_embd.weight"], dtype=torch.float32)
    every = prompts(encoder)
    rounded = [torch_logits(model, ids) for ids in every]
    model.double()
    exact = [torch_logits(model, ids) for ids in every]
    some = [(n, length) for n, ids in enumerate(every) for length in sorted({1, len(ids) // 2, len(ids)})]
    wanted = np.array([exact[n][length - 1] for n, length in some])
    found = engine_logits(path, [every[n][:length] for n, length in some], model.config.vocabulary)
    error, noise = distance(found, wanted), distance(np.concatenate(rounded), np.concatenate(exact))
    same = int((found.argmax(-1) == wanted.argmax(-1)).sum())
    print(
        f"from PyTorch in float64: the engine {error:.1e} of the logits' deviation, PyTorch in float32 {noise:.1e}; {same} of {len(some)} best tokens the same"
    )
    return error <= max(INT8_TOLERANCE, TIMES_FLOAT32 * noise)


def check_adapter(base, adapter):
    """Whether PyTorch and the engine compute the file of an adapter as NumPy does, and the adapter has an effect."""
    pairs = Adapter(adapter, gguf.Reader(base))
    model = lora.base_model(base)
    targets = {name.split(".")[2] for name in pairs.pairs}
    rank = next(iter(pairs.pairs.values()))[0].shape[0]
    lora.add_adapter(model, targets, rank, pairs.alpha)
    for name, product in model.products():
        if product.lora is not None:
            a, b = pairs.pairs[f"{name}.weight"]
            product.lora.a.data, product.lora.b.data = torch.tensor(a).float(), torch.tensor(b).float()
    model.double()
    found, wanted, plain = [], [], []
    every = prompts(Encoder(base))
    for ids in every:
        found.append(torch_logits(model, ids))
        wanted.append(Reference(base, adapter).logits(ids))
        plain.append(Reference(base).logits(ids))
    last = np.stack([logits[-1] for logits in wanted])
    engine = distance(engine_logits(base, every, last.shape[-1], adapter), last)
    found, wanted, plain = map(np.concatenate, (found, wanted, plain))
    error, effect = distance(found, wanted), distance(plain, wanted)
    print(
        f"adapter with {len(pairs.pairs)} pairs: from NumPy, PyTorch {error:.1e} of the logits' deviation, the engine {engine:.1e}; the adapter's effect {effect:.2f}"
    )
    return error <= EXACT_TOLERANCE and engine <= INT8_TOLERANCE and effect > 2 * INT8_TOLERANCE


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?", help="the folder of the run")
    parser.add_argument("model", type=Path, help="the file, or the base of an adapter")
    parser.add_argument("--adapter", type=Path)
    options = parser.parse_args()
    if options.adapter:
        is_right = check_adapter(options.model, options.adapter)
    elif options.run:
        encoder = Encoder(options.run / "tokenizer.json")
        is_right = check_model(checkpoint.read_model(options.run), encoder, options.model)
    else:
        parser.error("name the folder of a run, or an adapter")
    if not is_right:
        raise SystemExit("The logits are not the same.")


if __name__ == "__main__":
    main()
