// Package csrc holds the C and Objective-C of the module: the host executor, the
// vector kernels of the cpu backend, the vendor shims. It embeds its own files and has no other code: packages with
// cgo compile these files through a forwarder of one #include, and import csrc
// blankly, so that the go command sees an edit of any of them and rebuilds, and
// vendoring keeps them.
package csrc

import "embed"

// Files are the sources, by directory.
//
//go:embed shim.h cpu/*.h cpu/*.c host/*.h host/*.c cuda/*.h cuda/*.c metal/*.h metal/*.m opencl/*.h opencl/*.c rocm/*.h rocm/*.c rocm_smi/*.h rocm_smi/*.c
var Files embed.FS
