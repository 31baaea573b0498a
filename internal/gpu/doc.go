// Package gpu has the part that the shims for CUDA and HIP share: csrc/gpu, which is compiled here
// once, and fills the table of csrc/shim.h from what a vendor's C says of itself.
package gpu
