"""Reads and writes GGUF files with the types that this recipe needs: F32, F16, Q8_0 and I2_S."""

import struct

import numpy as np

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
FORMATS = {U8: "B", I8: "b", U16: "H", I16: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", U64: "Q", I64: "q", F64: "d"}
ALIGNMENT = 32
VERSION = 3

I2_S_BLOCK = 128
Q8_0_BLOCK = 32


def pack_i2_s(codes, scale):
    """The bytes of `codes` [rows, columns] of -1, 0 and 1. Byte j of a block has its values j, j + 32, j + 64 and
    j + 96, the first in the upper bits. The scale of all follows, with 28 bytes of padding."""
    if codes.shape[1] % I2_S_BLOCK:
        raise ValueError(f"I2_S needs rows of a multiple of {I2_S_BLOCK} values, not {codes.shape[1]}")
    fields = (codes + 1).astype(np.uint8).reshape(-1, 4, I2_S_BLOCK // 4)
    data = fields[:, 0] << 6 | fields[:, 1] << 4 | fields[:, 2] << 2 | fields[:, 3]
    return data.tobytes() + struct.pack("<f", scale) + bytes(28)


def unpack_i2_s(data, shape):
    """(codes of -1, 0 and 1 of a shape, their scale)."""
    count = int(np.prod(shape))
    packed = np.frombuffer(data, np.uint8, count // 4).reshape(-1, I2_S_BLOCK // 4)
    fields = np.stack([packed >> shift & 3 for shift in (6, 4, 2, 0)], 1)
    if fields.max() > 2:
        raise ValueError("I2_S has a code that is no weight")
    return fields.astype(np.int8).reshape(shape) - 1, struct.unpack_from("<f", data, count // 4)[0]


def pack_q8_0(values):
    """The bytes of a matrix: for each 32 values a scale in F16 and 32 bytes."""
    blocks = values.astype(np.float32).reshape(-1, Q8_0_BLOCK)
    scale = np.abs(blocks).max(1, keepdims=True) / np.float32(127)
    inverse = np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale > 0)
    out = np.zeros(len(blocks), np.dtype([("scale", "<f2"), ("values", "i1", Q8_0_BLOCK)]))
    out["scale"], out["values"] = scale[:, 0], np.rint(blocks * inverse)
    return out.tobytes()


def unpack_q8_0(data, shape):
    blocks = np.frombuffer(data, np.dtype([("scale", "<f2"), ("values", "i1", Q8_0_BLOCK)]))
    return (blocks["values"] * blocks["scale"].astype(np.float32)[:, None]).reshape(shape)


# name: (id in GGUF, bytes of so many values, bytes of values, values of bytes and a shape)
TYPES = {
    "f32": (0, lambda n: 4 * n, lambda v: v.astype("<f4").tobytes(), lambda d, s: np.frombuffer(d, "<f4").reshape(s)),
    "f16": (1, lambda n: 2 * n, lambda v: v.astype("<f2").tobytes(), lambda d, s: np.frombuffer(d, "<f2").reshape(s)),
    "q8_0": (8, lambda n: n // Q8_0_BLOCK * (Q8_0_BLOCK + 2), pack_q8_0, unpack_q8_0),
    "i2_s": (36, lambda n: n // 4 + 32, lambda v: pack_i2_s(*v), unpack_i2_s),
}
NAMES = {row[0]: name for name, row in TYPES.items()}


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def written(kind, value):
    if kind == STRING:
        return string(value)
    if isinstance(kind, tuple):  # (ARRAY, the kind of an item)
        return struct.pack("<IQ", kind[1], len(value)) + b"".join(written(kind[1], item) for item in value)
    return struct.pack("<" + FORMATS[kind], value)


def write(path, metadata, tensors):
    """Writes `metadata` [(key, kind, value)] and `tensors` [(name, type, values)]. The values are an array whose
    shape is [rows, columns], or (codes, scale) of I2_S."""
    header = b"GGUF" + struct.pack("<IQQ", VERSION, len(tensors), len(metadata))
    for key, kind, value in metadata:
        header += string(key) + struct.pack("<I", kind[0] if isinstance(kind, tuple) else kind) + written(kind, value)
    parts, offset = [], 0
    for name, kind, values in tensors:
        shape = (values[0] if isinstance(values, tuple) else values).shape
        data = TYPES[kind][2](values)
        header += string(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
        header += struct.pack("<IQ", TYPES[kind][0], offset)
        parts.append(data + bytes(-len(data) % ALIGNMENT))
        offset += len(parts[-1])
    with open(path, "wb") as file:
        file.write(header + bytes(-len(header) % ALIGNMENT))
        file.writelines(parts)


class Reader:
    """A GGUF file: `metadata` {key: value}, and `tensors` {name: values as `write` takes them}."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        self.at = 4
        if self.data[:4] != b"GGUF" or self.number("I") != VERSION:
            raise ValueError(f"{path} is no GGUF file of version {VERSION}")
        tensor_count, key_count = self.number("Q"), self.number("Q")
        self.metadata = {self.text(): self.value(self.number("I")) for _ in range(key_count)}
        infos = [self.info() for _ in range(tensor_count)]
        begin = self.at + -self.at % ALIGNMENT
        self.types = {name: kind for name, _, kind, _ in infos}
        self.tensors = {name: self.tensor(shape, kind, begin + offset) for name, shape, kind, offset in infos}

    def number(self, form):
        (value,) = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return value

    def text(self):
        length = self.number("Q")
        self.at += length
        return self.data[self.at - length : self.at].decode()

    def value(self, kind):
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            item, count = self.number("I"), self.number("Q")
            return [self.value(item) for _ in range(count)]
        return self.number(FORMATS[kind])

    def info(self):
        name = self.text()
        shape = [self.number("Q") for _ in range(self.number("I"))][::-1]
        number, offset = self.number("I"), self.number("Q")
        if number not in NAMES:
            raise ValueError(f"{name} has type {number}; this reader knows {', '.join(TYPES)}")
        return name, shape, NAMES[number], offset

    def tensor(self, shape, kind, at):
        _, size, _, unpack = TYPES[kind]
        return unpack(self.data[at : at + size(int(np.prod(shape)))], shape)
