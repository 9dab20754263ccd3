"""Trains a ternary model for a given time, from the beginning or on from the run before.

    python train.py RUN --tokenizer tokenizer.json --data stories.jsonl --seconds 3600
    python train.py RUN --resume --decay --data stories.jsonl --seconds 3600

Every run but the last keeps its learning rate; the last, with --decay, lets it fall to zero without weight decay,
which is when the ternary weights settle. RUN is a folder; checkpoint.py says what is in it.
"""

import argparse
import itertools
import json
import math
import os
import shutil
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

import checkpoint
from data import HELD_OUT, LEARNED, Blocks, Mix
from model import BitNet, Config
from tokenizer import Encoder

SHAPE = ("width", "ffn", "blocks", "heads", "kv_heads", "context")
REPORT_STEPS = 50
COMPILING_STEPS = 3
# --max-steps where nothing was said.
ANY_STEPS = 10**9
WEIGHT_DECAY = 0.1
# The share of a run after which it is kept for the first time, in case it is ended before its time.
KEEP_AT = 0.8
HELD_OUT_BLOCKS = 2
# Seconds for what comes after the last step: measuring and writing.
CLOSING_SECONDS = 15


def batch(block, begin, device):
    """(ids, targets, mask) of a block of rows. A target of -100 is not learned."""
    raw = torch.as_tensor(block).to(device, non_blocking=True)
    ids = (raw & LEARNED - 1).long()
    targets = F.pad(torch.where(raw >= LEARNED, ids, -100)[:, 1:], (0, 1), value=-100)
    documents = (ids == begin).cumsum(1)
    same = documents[:, :, None] == documents[:, None, :]
    return ids, targets, same.tril()[:, None]


def loss_of(model, ids, targets, mask):
    """Nats for a token that is learned."""
    logits = model(ids, mask).float()
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)


@torch.no_grad()
def held_out_loss(model, blocks, begin, device):
    held_out = (batch(blocks[HELD_OUT + n], begin, device) for n in range(HELD_OUT_BLOCKS))
    return sum(loss_of(model, *one).item() for one in held_out) / HELD_OUT_BLOCKS


def optimiser_of(model, rate, device):
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in trained if p.ndim > 1]},
        {"params": [p for p in trained if p.ndim == 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.95), weight_decay=WEIGHT_DECAY, fused=device == "cuda")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the folder of the run")
    parser.add_argument("--tokenizer", help="tokenizer.json, as tokenizer.py makes it; needed for a new run")
    Mix.add_arguments(parser)
    parser.add_argument("--seconds", type=float, default=520, help="how long all of this may take, the start too")
    parser.add_argument("--max-steps", type=int, default=ANY_STEPS, help="fewer steps than the time allows")
    parser.add_argument("--resume", action="store_true", help="go on from state.pt, or else from part-*.npz")
    parser.add_argument("--decay", action="store_true", help="the last run: let the learning rate fall to zero")
    parser.add_argument("--rate", type=float, help="the learning rate at the beginning: 1.5e-3, or 1e-3 with --decay")
    parser.add_argument(
        "--warm-up", type=int, default=300, help="steps until it is reached, where the optimiser begins anew"
    )
    parser.add_argument("--rows", type=int, default=64, help="rows of a step")
    parser.add_argument(
        "--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2), help="processes that make rows"
    )
    parser.add_argument("--parts", type=Path, help="a folder for the weights in files of less than 16 MB")
    parser.add_argument("--no-compile", action="store_true", help="without torch.compile")
    for name in SHAPE:
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, help="shape of a new model")
    return parser.parse_args()


class Run:
    """A run of training, from its arguments to what it keeps."""

    def __init__(self, options):
        self.options, self.start = options, time.monotonic()
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.rate = options.rate or (1e-3 if options.decay else 1.5e-3)
        self.next_block, self.tokens, self.losses = 0, 0, []
        # Whether the optimiser knows nothing yet.
        self.is_new = True
        if options.resume:
            self.resume()
        else:
            self.begin()
        self.begin_token = Encoder(options.run / "tokenizer.json").begin
        self.blocks = Blocks(Mix.of(options), options.run / "tokenizer.json", self.model.config.context, options.rows)

    def begin(self):
        options = self.options
        if (options.run / "state.pt").exists():
            raise SystemExit(f"{options.run} has a run already: add --resume, or name another folder")
        if not options.tokenizer:
            raise SystemExit("A new run needs --tokenizer")
        options.run.mkdir(parents=True, exist_ok=True)
        shutil.copy(options.tokenizer, options.run / "tokenizer.json")
        shape = {name: getattr(options, name) for name in SHAPE if getattr(options, name)}
        vocabulary = Encoder(options.run / "tokenizer.json").size
        self.model = BitNet(Config(vocabulary=vocabulary, **shape)).to(self.device)
        self.optimiser = optimiser_of(self.model, self.rate, self.device)

    def resume(self):
        folder = self.options.run
        log = json.loads((folder / "log.json").read_text())
        self.next_block, self.tokens, self.losses = log["next_block"], log["tokens"], log["losses"]
        self.model = checkpoint.read_model(folder).to(self.device)
        self.optimiser = optimiser_of(self.model, self.rate, self.device)
        if (folder / "state.pt").exists():
            self.optimiser.load_state_dict(checkpoint.read_state(folder, self.device)["optimiser"])
            self.is_new = False

    def elapsed(self):
        return time.monotonic() - self.start

    def rows(self):
        """The blocks that follow, made by other processes."""
        loader = DataLoader(
            self.blocks,
            sampler=itertools.count(self.next_block),
            batch_size=None,
            num_workers=self.options.workers,
            prefetch_factor=8,
            pin_memory=self.device == "cuda",
        )
        return iter(loader)

    def learn(self):
        options = self.options
        # The processes begin before the first product, so that they make rows while kernels are compiled.
        rows = self.rows()
        compiled = loss_of if options.no_compile or self.device == "cpu" else torch.compile(loss_of, dynamic=False)
        room, is_kept, waited, losses = None, False, 0.0, []
        for step in range(options.max_steps):
            if step == COMPILING_STEPS:
                if self.device == "cuda":
                    torch.cuda.synchronize()
                room = Room(self.elapsed(), options.seconds - CLOSING_SECONDS, self.tokens)
                waited = 0.0
                print(f"compiled after {self.elapsed():.0f} s", flush=True)
            past = room.share(self.elapsed()) if room else 0.0
            if past >= 1 or self.elapsed() > options.seconds - CLOSING_SECONDS:
                break
            if options.max_steps < ANY_STEPS:
                past = step / options.max_steps
            if past > KEEP_AT and not is_kept and self.device == "cuda":
                is_kept = True
                self.keep(None)
            now = self.set_rate(step, past)
            asked = self.elapsed()
            block = next(rows)
            waited += self.elapsed() - asked
            loss = compiled(self.model, *batch(block, self.begin_token, self.device))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimiser.step()
            self.optimiser.zero_grad(set_to_none=True)
            losses.append(loss.detach())
            self.next_block, self.tokens = self.next_block + 1, self.tokens + block.numel()
            if len(losses) == REPORT_STEPS:
                # This also waits for the GPU, so that the clock is right.
                mean = torch.stack(losses).mean().item()
                losses = []
                if math.isnan(mean):
                    raise SystemExit("The loss is no number any more. Go on from the run before, with a lower --rate")
                self.losses.append({"tokens": self.tokens, "loss": round(mean, 4), "rate": now})
                speed = f"{room.speed(self.elapsed(), self.tokens):.0f}k tokens/s" if room else ""
                print(
                    f"{self.elapsed():4.0f} s  step {step + 1}  loss {mean:.4f}  rate {now:.2e}  {speed}, "
                    f"{waited:.0f} s waited for rows",
                    flush=True,
                )

    def set_rate(self, step, past):
        """Sets the learning rate for a step, at a share of the time; returns it."""
        options = self.options
        now = self.rate * (min(1.0, (step + 1) / options.warm_up) if self.is_new else 1.0)
        now *= 1 - past if options.decay else 1
        for group in self.optimiser.param_groups:
            group["lr"] = now
            group["weight_decay"] = WEIGHT_DECAY if group["params"][0].ndim > 1 and not options.decay else 0.0
        return now

    def keep(self, held_out):
        """Writes the state, and the weights in parts if they are wanted."""
        options = self.options
        checkpoint.write_state(options.run, self.model, self.optimiser)
        log = {"next_block": self.next_block, "tokens": self.tokens, "held_out": held_out, "losses": self.losses}
        (options.run / "log.json").write_text(json.dumps(log) + "\n")
        if options.parts:
            options.parts.mkdir(parents=True, exist_ok=True)
            checkpoint.write_parts(self.model, options.parts)
            for name in ("log.json", "tokenizer.json"):
                shutil.copy(options.run / name, options.parts / name)


class Room:
    """The time between the first steps, which compile, and the last."""

    def __init__(self, begin, end, tokens):
        self.begin, self.end, self.tokens = begin, end, tokens

    def share(self, now):
        return (now - self.begin) / max(1.0, self.end - self.begin)

    def speed(self, now, tokens):
        """Thousand tokens a second."""
        return (tokens - self.tokens) / (now - self.begin) / 1e3


def main():
    options = arguments()
    torch.manual_seed(options.seed)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    run = Run(options)
    print(
        f"{run.model.parameter_count() / 1e6:.1f} million parameters on {run.device}, from block {run.next_block}",
        flush=True,
    )
    run.learn()
    held_out = held_out_loss(run.model, run.blocks, run.begin_token, run.device)
    print(
        f"{run.elapsed():4.0f} s  {run.tokens / 1e6:.1f} million tokens so far, held-out loss {held_out:.4f}",
        flush=True,
    )
    run.keep(held_out)


if __name__ == "__main__":
    main()
