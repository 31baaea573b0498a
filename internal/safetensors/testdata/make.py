"""Makes the files beside it from the description of the format, with the standard library alone.

Element i of a tensor is i - 2, cast to the type, and booleans are i % 2; the tests know that.
types and empty are laid out as the reference implementation (0.5) does: tensors in the order
of ORDER from its end, then by name; headers without spaces between tokens, padded to 8 bytes.
"""
import json
import os
import struct

here = os.path.dirname(os.path.abspath(__file__))

ORDER = {
    "BOOL": "?", "U8": "B", "I8": "b", "I16": "h", "U16": "H", "F16": "e", "BF16": None,
    "I32": "i", "U32": "I", "F32": "f", "F64": "d", "I64": "q", "U64": "Q",
}


def element(dtype, i):
    if dtype == "BOOL":
        return struct.pack("<?", i % 2)
    if dtype == "BF16":
        return struct.pack("<f", i - 2)[2:]  # exact for small integers
    letter = ORDER[dtype]
    if letter in "efd":
        return struct.pack("<" + letter, i - 2)
    size = struct.calcsize("<" + letter)
    return ((i - 2) % (1 << 8 * size)).to_bytes(size, "little")


def data(dtype, shape):
    n = 1
    for d in shape:
        n *= d
    return b"".join(element(dtype, i) for i in range(n))


def entry(dtype, shape, begin, end):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def save(name, header, body):
    with open(os.path.join(here, name + ".safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + body)


def reference(name, tensors, metadata=None):
    rank = list(ORDER)
    header, body = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for key in sorted(sorted(tensors), key=lambda k: -rank.index(tensors[k][0])):
        dtype, shape = tensors[key]
        part = data(dtype, shape)
        header[key] = entry(dtype, shape, len(body), len(body) + len(part))
        body += part
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    save(name, text + b" " * (-len(text) % 8), body)


reference("types", {
    **{t.lower() + "." + str(len(shape)): (t, shape) for t in ORDER for shape in ([3], [2, 3])},
    "scalar": ("F32", []),
    "nothing": ("F64", [0, 3]),
    "ein \"Name\" <&> \u00fc\u4e2d\U0001f600\n": ("U8", [1]),
}, {"format": "np"})
reference("empty", {})

# What other programs write: data that begins anywhere, entries in any order, white space, escapes, and
# types of 8 bits and less beside others.
text = json.dumps({
    "z\u00fc\U0001f600/": entry("F32", [2], 9, 17),
    "nothing": entry("F16", [4, 0], 3, 3),
    "__metadata__": {"source": "a\tb", "": "no name"},
    "eight": entry("F8_E4M3", [3], 0, 3),
    "four": entry("F4", [2, 2], 3, 5),
    "new": entry("Q7_X", [5], 5, 9),
}, indent=1).replace('"source"', '"so\\u0075rce"').encode() + b"\r\n\t "
text += b" " * (1 - len(text) % 2)  # an odd length
save("foreign", text, b"\x01\x02\x03" + b"\x12\x34" + b"\x05\x06\x07\x08" + data("F32", [2]))
