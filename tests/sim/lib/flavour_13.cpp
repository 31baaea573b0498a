// flavour_13.cpp: CUDA 13.0: no architecture before Turing, and builtins in a library of their own,
// which NVRTC looks for by its bare name.

#include "flavour.h"

namespace sim {

static const int archs[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121, 0};
const Flavour flavour = {13000, 90, 13, 0, "libnvrtc-builtins.so.13.0", archs, "9.0", 130002};

} // namespace sim
