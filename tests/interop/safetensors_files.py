# SPDX-FileCopyrightText: 2026 The roundpipe authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The safetensors library's side of the comparison with ours.

safetensors_files.py write FOLDER   writes the tensors that safetensors_files.cpp knows, too
safetensors_files.py check FOLDER   checks those that our side has written
safetensors_files.py damage FOLDER  writes damaged files, and which of them the library reads
"""

import ctypes
import json
import os
import random
import sys

import numpy
import safetensors
from safetensors import numpy as safetensors_numpy

SINGLE = [
    ("layer.0.weight", "BF16", [3, 5]),
    ("layer.0.bias", "BF16", [5]),
    ("scalar", "F64", []),
    ("f32", "F32", [2, 3, 4]),
    ("f16", "F16", [7]),
    ("i64", "I64", [1, 1, 2]),
    ("i32", "I32", [3]),
    ("i16", "I16", [3]),
    ("i8", "I8", [3]),
    ("u8", "U8", [3]),
    ("u16", "U16", [3]),
    ("u32", "U32", [3]),
    ("u64", "U64", [3]),
    ("bool", "BOOL", [3]),
    ("f8_e4m3", "F8_E4M3", [5]),
    ("f8_e5m2", "F8_E5M2", [5]),
    ("empty", "F32", [4, 0, 2]),
    ("deep", "F16", [1, 2, 1, 2, 1, 2, 1, 2]),
    ('a "name" with \\ and /', "F32", [1]),
    ("na\u00efve \u20ac\n", "F32", [1]),
]
SHARDS = [[("a", "F32", [8]), ("c", "BF16", [8])], [("b", "F32", [8]), ("d", "U8", [8])]]
SHARD_NAME = "model-0000{}-of-00002.safetensors"
TYPES = {  # the library's names for writing, and the bytes of an element
    "BOOL": ("bool", 1),
    "U8": ("uint8", 1),
    "I8": ("int8", 1),
    "F8_E4M3": ("float8_e4m3fn", 1),
    "F8_E5M2": ("float8_e5m2", 1),
    "U16": ("uint16", 2),
    "I16": ("int16", 2),
    "F16": ("float16", 2),
    "BF16": ("bfloat16", 2),
    "U32": ("uint32", 4),
    "I32": ("int32", 4),
    "F32": ("float32", 4),
    "U64": ("uint64", 8),
    "I64": ("int64", 8),
    "F64": ("float64", 8),
}


def content(name, dtype, shape):
    size = int(numpy.prod(shape, dtype=numpy.int64)) * TYPES[dtype][1]
    first = name.encode()[0]
    values = [7 * i + 13 * len(name.encode()) + first for i in range(size)]
    return bytes(v % 2 if dtype == "BOOL" else v % 256 for v in values)


def save(path, tensors):
    described = {}
    kept = []
    for name, dtype, shape in tensors:
        data = content(name, dtype, shape)
        if hasattr(safetensors, "TensorSpec"):
            buffer = ctypes.create_string_buffer(data, max(len(data), 1))
            kept.append(buffer)
            described[name] = safetensors.TensorSpec(
                dtype=TYPES[dtype][0],
                shape=shape,
                data_ptr=ctypes.addressof(buffer),
                data_len=len(data),
            )
        else:  # before version 0.8
            described[name] = {"dtype": TYPES[dtype][0], "shape": shape, "data": data}
    safetensors.serialize_file(described, path, metadata={"format": "pt"})


def write(folder):
    os.makedirs(os.path.join(folder, "sharded"))
    save(os.path.join(folder, "single.safetensors"), SINGLE)
    index = {"metadata": {"total_size": 0}, "weight_map": {}}
    for number, tensors in enumerate(SHARDS, 1):
        shard = SHARD_NAME.format(number)
        save(os.path.join(folder, "sharded", shard), tensors)
        for tensor in tensors:
            index["metadata"]["total_size"] += len(content(*tensor))
            index["weight_map"][tensor[0]] = shard
    with open(os.path.join(folder, "sharded", "model.safetensors.index.json"), "w") as file:
        file.write(json.dumps(index, indent=2, sort_keys=True) + "\n")


def check_file(path, tensors):
    with open(path, "rb") as file:
        found = dict(safetensors.deserialize(file.read()))
    assert found.keys() == {name for name, _, _ in tensors}, found.keys()
    for name, dtype, shape in tensors:
        tensor = found[name]
        assert (tensor["dtype"], list(tensor["shape"])) == (dtype, shape), (name, tensor)
        assert bytes(tensor["data"]) == content(name, dtype, shape), name
    with safetensors.safe_open(path, "numpy") as file:
        assert file.metadata() == {"format": "pt"}, file.metadata()


def check(folder):
    check_file(os.path.join(folder, "single.safetensors"), SINGLE)
    with open(os.path.join(folder, "sharded", "model.safetensors.index.json")) as file:
        index = json.load(file)
    for number, tensors in enumerate(SHARDS, 1):
        shard = SHARD_NAME.format(number)
        path = os.path.join(folder, "sharded", shard)
        check_file(path, tensors)
        for name, dtype, shape in tensors:
            assert index["weight_map"].pop(name) == shard, name
            index["metadata"]["total_size"] -= len(content(name, dtype, shape))
            if dtype == "F32":  # as users read it
                array = safetensors_numpy.load_file(path)[name] if number == 2 else None
                want = numpy.frombuffer(content(name, dtype, shape), numpy.float32).reshape(shape)
                assert array is None or array.tobytes() == want.tobytes(), name
    assert index == {"metadata": {"total_size": 0}, "weight_map": {}}, index


def damage(folder):
    os.makedirs(folder)
    texts = [
        {"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}},
        {
            "__metadata__": {"format": "pt", "a": "b"},
            "a": {"dtype": "U8", "shape": [3], "data_offsets": [0, 3]},
            "b": {"dtype": "BF16", "shape": [], "data_offsets": [3, 5]},
            "c": {"dtype": "F4", "shape": [4], "data_offsets": [5, 7]},
            "d": {"dtype": "I64", "shape": [0, 9], "data_offsets": [7, 7]},
        },
    ]
    whole = []
    for text in texts:
        end = max(entry.get("data_offsets", [0, 0])[1] for entry in text.values())
        whole.append((json.dumps(text).encode(), end))
    chance = random.Random(20260101)
    tokens = [b"0", b"1", b"2", b"4", b"-1", b"1e1", b"1.0", b'"', b"[", b"]", b"{", b"}", b",", b":"]
    tokens += [b"null", b"true", b'"F32"', b'"shape"', b'"a"', b'"x"', b" ", b"\n", b"\0", b"\xff", b"\\"]
    tokens += [b"18446744073709551615", b"18446744073709551616", b"4294967296", b'"U8"', b'"F128"']
    words = [b'"F32"', b'"shape"', b'"data_offsets"', b'"dtype"', b'"a"', b'"b"', b'"U8"', b"pt"]
    words += [b"0", b"3", b"5", b"24", b"7", b"[", b"]", b"2"]
    more = [b'"x": 1, "shape"', b'"shape": [1], "shape"', b'"dtype": "U8", "dtype"', b'"x"']
    with open(os.path.join(folder, "verdicts.txt"), "w") as verdicts:
        for number in range(3000):
            header, end = chance.choice(whole)
            kind = chance.random()
            if kind < 0.3:  # another word
                word = chance.choice([w for w in words if w in header])
                header = header.replace(word, chance.choice(tokens), 1)
            elif kind < 0.4:  # one more field, or key
                header = header.replace(chance.choice([b'"shape"', b'"dtype"']), chance.choice(more), 1)
            elif kind < 0.5:  # what JSON takes for nothing, or for the same
                header = chance.choice([header + b"  \n", header.replace(b" ", b""), header])
            elif kind < 0.9:  # any bytes
                at = chance.randrange(len(header))
                header = header[:at] + chance.choice(tokens) + header[at + chance.choice([0, 1, 2]) :]
            length = len(header) + chance.choice([0] * 40 + [1, -1, 10**9])
            data = bytes(max(0, end + chance.choice([0] * 20 + [1, -1])))
            file = length.to_bytes(8, "little") + header + data
            name = "{}.safetensors".format(number)
            with open(os.path.join(folder, name), "wb") as out:
                out.write(file)
            try:
                safetensors.deserialize(file)
                verdict = "reads"
            except safetensors.SafetensorError:
                verdict = "refuses"
            verdicts.write("{} {}\n".format(name, verdict))


if __name__ == "__main__":
    {"write": write, "check": check, "damage": damage}[sys.argv[1]](sys.argv[2])
