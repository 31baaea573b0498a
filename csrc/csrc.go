// Package csrc contains the C and Objective-C code of the module: the host executor, the vector
// kernels of the cpu backend, and the shims for the vendors' APIs. Its only Go code embeds these
// files. Packages with cgo compile them through a C file that includes them, and have a blank import
// of csrc, so that the go command rebuilds after an edit of any of them, and
// vendoring keeps them.
package csrc

import "embed"

// Files contains the C sources, by directory.
//
//go:embed shim.h tell.h cpu/*.h cpu/*.c host/*.h host/*.c gpu/*.h gpu/*.c cuda/*.h cuda/*.c rocm/*.h rocm/*.c
//go:embed metal/*.h metal/*.m opencl/*.h opencl/*.c vulkan/*.h vulkan/*.c vulkan/tools/*.comp
var Files embed.FS
