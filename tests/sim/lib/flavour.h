// flavour.h: what differs between the simulated CUDA of two versions. A library is linked with one
// of the files flavour_*.cpp.

#ifndef CONCORD_SIM_FLAVOUR_H
#define CONCORD_SIM_FLAVOUR_H

namespace sim {

struct Flavour {
  int driver, arch;     // the driver's version, and the architecture of its devices
  int major, minor;     // of NVRTC
  const char *builtins; // the library that NVRTC opens at the first compilation; nullptr: none
  const int *archs;     // that NVRTC knows; 0 ends them

  const char *ptx; // version of its PTX
  int blas;        // cuBLAS's number of its version
};
extern const Flavour flavour;

} // namespace sim

#endif
