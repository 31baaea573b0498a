"""Makes the files beside it with NumPy (run once, with NumPy 1.24.2).

Element i in C order is i - 2, cast to the type; the tests know that.
"""
import io
import os
import numpy as np

here = os.path.dirname(os.path.abspath(__file__))


def values(shape, dtype):
    n = int(np.prod(shape))
    return (np.arange(n, dtype=np.int64) - 2).astype(dtype).reshape(shape)


def save(name, array, version=None):
    with open(os.path.join(here, name + ".npy"), "wb") as f:
        np.lib.format.write_array(f, array, version=version)


for t in ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]:
    save("little_" + t, values((2, 3), "<" + t))
    save("big_fortran_" + t, np.asfortranarray(values((2, 3, 4), ">" + t)))
save("scalar", values((), "<f4"))
save("vector", values((3,), "<f4"))
save("vector_big", values((3,), ">f4"))
save("empty", values((0, 3), "<f4"))
save("empty_fortran", np.asfortranarray(values((3, 0, 2), "<f4")))
save("fortran", np.asfortranarray(values((3, 5), "<i4")))
save("version2", values((2, 3), "<f4"), version=(2, 0))
save("version3", values((2, 3), "<f4"), version=(3, 0))
save("bool", np.array([True, False, True]))
save("unsupported_complex", np.zeros(2, "<c16"))
save("unsupported_string", np.array(["ab", "c"]))
save("unsupported_struct", np.zeros(2, [("a", "<f4"), ("b", "<i4")]))
save("unsupported_object", np.array([None, 1]))
save("unsupported_time", np.zeros(2, "<M8[s]"))
save("unsupported_longdouble", np.zeros(2, np.longdouble))
