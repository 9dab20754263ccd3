"""BitNet b1.58 (`bitnet-b1.58` of GGUF files) in PyTorch, for training.

A product of a block rounds its weights to -1, 0 and 1 times the mean of their absolute values, and its input to
int8 by the largest absolute value of each token. Gradients go straight through both roundings.
"""

from dataclasses import asdict, dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

MIN_SCALE = 1e-5

# The products of a block, by their names in GGUF files.
PRODUCTS = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")


@dataclass
class Config:
    """The shape of a model. I2_S needs widths that are multiples of 128."""

    vocabulary: int = 5120
    width: int = 640
    ffn: int = 1792
    blocks: int = 10
    heads: int = 10
    kv_heads: int = 5
    context: int = 1024
    rope_base: float = 10000.0
    eps: float = 1e-5

    def __post_init__(self):
        if self.width % 128 or self.ffn % 128:
            raise ValueError(f"width {self.width} and ffn {self.ffn} must be multiples of 128")
        if self.width % self.heads or self.heads % self.kv_heads or self.head_dim % 16:
            raise ValueError(f"{self.heads} heads of width {self.width}, {self.kv_heads} for keys, do not fit")

    @property
    def head_dim(self):
        return self.width // self.heads

    def dict(self):
        return asdict(self)


class RMSNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x):
        x = x.to(self.weight.dtype)
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


class Lora(nn.Module):
    """The delta `scale * B (A x)` of one product. B begins as zero, so the model begins as its base."""

    def __init__(self, size_in, size_out, rank, scale):
        super().__init__()
        self.a = nn.Parameter(torch.randn(rank, size_in) / size_in**0.5)
        self.b = nn.Parameter(torch.zeros(size_out, rank))
        self.scale = scale

    def forward(self, x):
        return self.scale * F.linear(F.linear(x, self.a), self.b)


class BitLinear(nn.Module):
    """A product with ternary weights. `freeze` makes them -1, 0 and 1 with a scale of their own."""

    def __init__(self, size_in, size_out):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size_out, size_in) * 0.02)
        self.lora = None
        self.register_buffer("fixed_scale", None)

    def freeze(self, codes, scale):
        """Takes weights of a file: `codes` [out, in] of -1, 0 and 1."""
        self.weight = nn.Parameter(torch.as_tensor(codes, dtype=torch.float32), requires_grad=False)
        self.fixed_scale = torch.tensor(scale, dtype=torch.float32)

    def ternary(self):
        """(weights of -1, 0 and 1, their scale). Gradients reach the weights as if they were not rounded."""
        if self.fixed_scale is not None:
            return self.weight, self.fixed_scale
        scale = self.weight.abs().mean().clamp(min=MIN_SCALE).detach()
        scaled = self.weight / scale
        return scaled + (scaled.round().clamp(-1, 1) - scaled).detach(), scale

    def forward(self, x):
        weight, scale = self.ternary()
        to_int8 = (127.0 / x.abs().amax(-1, keepdim=True).clamp(min=MIN_SCALE)).detach()
        scaled = x * to_int8
        rounded = scaled + (scaled.round().clamp(-128, 127) - scaled).detach()
        if x.is_cuda:  # bfloat16 holds these integers exactly.
            y = F.linear(rounded.bfloat16(), weight.bfloat16()).float()
        else:
            y = F.linear(rounded, weight)
        y = y * (scale / to_int8)
        # As engines do, the delta takes the input before it is rounded.
        return y if self.lora is None else y + self.lora(x)


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        width, kv, ffn, eps = config.width, config.kv_heads * config.head_dim, config.ffn, config.eps
        self.attn_norm, self.attn_sub_norm = RMSNorm(width, eps), RMSNorm(width, eps)
        self.attn_q, self.attn_k, self.attn_v = BitLinear(width, width), BitLinear(width, kv), BitLinear(width, kv)
        self.attn_output = BitLinear(width, width)
        self.ffn_norm, self.ffn_sub_norm = RMSNorm(width, eps), RMSNorm(ffn, eps)
        self.ffn_gate, self.ffn_up, self.ffn_down = BitLinear(width, ffn), BitLinear(width, ffn), BitLinear(ffn, width)

    def forward(self, x, cos, sin, mask):
        config, (batch, tokens, _) = self.config, x.shape
        h = self.attn_norm(x)

        def heads(y, n):
            return y.view(batch, tokens, n, config.head_dim).transpose(1, 2)

        q = rotate(heads(self.attn_q(h), config.heads), cos, sin)
        k = rotate(heads(self.attn_k(h), config.kv_heads), cos, sin)
        v = heads(self.attn_v(h), config.kv_heads)
        k, v = (t.repeat_interleave(config.heads // config.kv_heads, 1) for t in (k, v))
        if x.is_cuda:
            q, k, v = q.bfloat16(), k.bfloat16(), v.bfloat16()
        h = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=mask is None)
        h = h.transpose(1, 2).reshape(batch, tokens, -1)
        x = x + self.attn_output(self.attn_sub_norm(h))
        h = self.ffn_norm(x)
        h = F.relu(self.ffn_gate(h)).square() * self.ffn_up(h)
        return x + self.ffn_down(self.ffn_sub_norm(h))


def rotate(x, cos, sin):
    """RoPE that pairs a value with the one half a head further."""
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


class BitNet(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.token_embd = nn.Embedding(config.vocabulary, config.width)
        nn.init.normal_(self.token_embd.weight, std=0.02)
        self.blk = nn.ModuleList(Block(config) for _ in range(config.blocks))
        self.output_norm = RMSNorm(config.width, config.eps)
        half = torch.arange(0, config.head_dim, 2).double() / config.head_dim
        angles = torch.outer(torch.arange(config.context).double(), config.rope_base**-half).repeat(1, 2)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, ids, mask=None):
        """Logits [batch, tokens, vocabulary] of `ids` [batch, tokens]. `mask` [batch, 1, tokens, tokens] says
        which tokens a token sees; none: all before it and itself."""
        tokens, x = ids.shape[1], self.token_embd(ids)
        cos, sin = self.cos[:tokens].to(x.dtype), self.sin[:tokens].to(x.dtype)
        for block in self.blk:
            x = block(x, cos, sin, mask)
        x, embedding = self.output_norm(x), self.token_embd.weight
        return F.linear(x.bfloat16(), embedding.bfloat16()) if x.is_cuda else F.linear(x, embedding)

    def products(self):
        """(name in GGUF files without `.weight`, BitLinear) of every product."""
        for n, block in enumerate(self.blk):
            for name in PRODUCTS:
                yield f"blk.{n}.{name}", getattr(block, name)

    def parameter_count(self):
        return sum(p.numel() for p in self.parameters())
