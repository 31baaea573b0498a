#!/usr/bin/env python3
# Makes ggml.gguf by ggml's own writer, or reads a file by its reader and prints what is in it.
#
#   python3 make.py libggml-base.so
#   python3 make.py libggml-base.so FILE
#
# The library is part of every build of llama.cpp; the file is of that in node-llama-cpp 3.22.1 for Linux on x86-64.
import ctypes as C, sys

lib = C.CDLL(sys.argv[1])
P, S = C.c_void_p, C.c_char_p


def fn(name, result, *args):
    f = getattr(lib, name)
    f.restype, f.argtypes = result, args
    return f


class Init(C.Structure):
    _fields_ = [("size", C.c_size_t), ("buffer", P), ("no_alloc", C.c_bool)]


class Read(C.Structure):
    _fields_ = [("no_alloc", C.c_bool), ("ctx", P)]


if len(sys.argv) > 2:
    g = fn("gguf_init_from_file", P, S, Read)(sys.argv[2].encode(), Read(True, None))
    if not g:
        sys.exit("ggml refuses the file")
    print("version", fn("gguf_get_version", C.c_uint32, P)(g), "alignment", fn("gguf_get_alignment", C.c_size_t, P)(g))
    for i in range(fn("gguf_get_n_kv", C.c_int64, P)(g)):
        print("key", fn("gguf_get_key", S, P, C.c_int64)(g, i).decode(), "kind", fn("gguf_get_kv_type", C.c_int, P, C.c_int64)(g, i))
    for i in range(fn("gguf_get_n_tensors", C.c_int64, P)(g)):
        print("tensor", fn("gguf_get_tensor_name", S, P, C.c_int64)(g, i).decode(), "type", fn("gguf_get_tensor_type", C.c_int, P, C.c_int64)(g, i),
              "at", fn("gguf_get_tensor_offset", C.c_size_t, P, C.c_int64)(g, i), "bytes", fn("gguf_get_tensor_size", C.c_size_t, P, C.c_int64)(g, i))
    sys.exit()

ctx = fn("ggml_init", P, Init)(Init(1 << 20, None, False))
g = fn("gguf_init_empty", P)()
for name, kind, value in (("u8", C.c_uint8, 200), ("i8", C.c_int8, -100), ("u16", C.c_uint16, 60000), ("i16", C.c_int16, -30000), ("u32", C.c_uint32, 4000000000),
                          ("i32", C.c_int32, -2000000000), ("f32", C.c_float, 1.5), ("u64", C.c_uint64, 1 << 63), ("i64", C.c_int64, -(1 << 62)), ("f64", C.c_double, -0.1), ("bool", C.c_bool, True)):
    fn("gguf_set_val_" + name, None, P, S, kind)(g, ("test." + name).encode(), value)
fn("gguf_set_val_str", None, P, S, S)(g, b"general.name", "grün".encode())
arr = (C.c_int32 * 3)(1, -2, 3)
fn("gguf_set_arr_data", None, P, S, C.c_int, P, C.c_size_t)(g, b"test.numbers", 5, arr, 3)
texts = (S * 3)(b"a", b"", b"\xff\xfe")
fn("gguf_set_arr_str", None, P, S, P, C.c_size_t)(g, b"test.texts", texts, 3)
new = fn("ggml_new_tensor_2d", P, P, C.c_int, C.c_int64, C.c_int64)
data = fn("ggml_get_data", P, P)
x = [((i * 37) % 101 - 50) / 16 for i in range(512)]
xs = (C.c_float * 512)(*x)
for name, kind, cols, rows, quantize in (("plain", 0, 3, 2, None), ("bytes", 8, 64, 2, "q8_0"), ("trits", 35, 256, 2, "tq2_0"), ("halves", 1, 5, 1, "f16")):
    t = new(ctx, kind, cols, rows)
    fn("ggml_set_name", P, P, S)(t, name.encode())
    if quantize == "f16":
        fn("ggml_fp32_to_fp16_row", None, P, P, C.c_int64)(xs, data(t), cols * rows)
    elif quantize:
        fn(f"quantize_row_{quantize}_ref", None, P, P, C.c_int64)(xs, data(t), cols * rows)
    else:
        C.memmove(data(t), xs, 4 * cols * rows)
    fn("gguf_add_tensor", None, P, P)(g, t)
if not fn("gguf_write_to_file", C.c_bool, P, S, C.c_bool)(g, b"ggml.gguf", False):
    sys.exit("not written")
