// flavour_12.cpp: a driver of CUDA 12.2 with an older NVRTC, as on a machine whose parts were
// installed one by one.

#include "flavour.h"

namespace sim {

static const int archs[] = {35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 0};
const Flavour flavour = {12020, 80, 11, 8, nullptr, archs, "7.8", 120205};

} // namespace sim
