package render

import (
	_ "embed"
	"strings"
)

// The preludes: C++ that gives a rendered program OpenCL C's types and built-ins.
// types.h, convert.h, math.h, math2.h and integer.h are shared by the C++ targets;
// what stands before them maps the cc_m_ and cc_a_ hooks to the target's library,
// what stands after them is the work item. Metal, which is another dialect of C++, has
// its own.

var (
	//go:embed prelude/abi.h
	preludeABI string
	//go:embed prelude/host_math.h
	preludeHostMath string
	//go:embed prelude/host_float.h
	preludeHostFloat string
	//go:embed prelude/cuda.h
	preludeCUDA string
	//go:embed prelude/hip.h
	preludeHIP string
	//go:embed prelude/gpu_math.h
	preludeGPUMath string
	//go:embed prelude/types.h
	preludeTypes string
	//go:embed prelude/convert.h
	preludeConvert string
	//go:embed prelude/math.h
	preludeMath string
	//go:embed prelude/math2.h
	preludeMath2 string
	//go:embed prelude/integer.h
	preludeInteger string
	//go:embed prelude/host.h
	preludeHost string
	//go:embed prelude/gpu.h
	preludeGPU string
	//go:embed prelude/metal_types.h
	preludeMetalTypes string
	//go:embed prelude/metal_convert.h
	preludeMetalConvert string
	//go:embed prelude/metal_integer.h
	preludeMetalInteger string
	//go:embed prelude/metal_math.h
	preludeMetalMath string
	//go:embed prelude/metal_math2.h
	preludeMetalMath2 string
	//go:embed prelude/metal_item.h
	preludeMetalItem string // inside the program's struct
	//go:embed prelude/metal_simd.h
	preludeMetalSIMD string // likewise
)

// preludePart is one file of a prelude.
type preludePart struct{ name, text string }

// preludeParts returns the files of a target's prelude, in order.
func preludeParts(t Target) []preludePart {
	var parts []preludePart
	switch t {
	case Host:
		parts = []preludePart{{"abi.h", preludeABI}, {"host_math.h", preludeHostMath}}
	case CUDA:
		parts = []preludePart{{"cuda.h", preludeCUDA}, {"gpu_math.h", preludeGPUMath}}
	case HIP:
		parts = []preludePart{{"hip.h", preludeHIP}, {"gpu_math.h", preludeGPUMath}}
	case Metal:
		return []preludePart{{"metal_types.h", preludeMetalTypes}, {"metal_convert.h", preludeMetalConvert},
			{"metal_math.h", preludeMetalMath}, {"metal_math2.h", preludeMetalMath2}, {"metal_integer.h", preludeMetalInteger}}
	default:
		return nil
	}
	parts = append(parts, preludePart{"types.h", preludeTypes})
	if t == Host {
		parts = append(parts, preludePart{"host_float.h", preludeHostFloat})
	}
	parts = append(parts, preludePart{"convert.h", preludeConvert}, preludePart{"math.h", preludeMath},
		preludePart{"math2.h", preludeMath2}, preludePart{"integer.h", preludeInteger})
	if t == Host {
		return append(parts, preludePart{"host.h", preludeHost})
	}
	return append(parts, preludePart{"gpu.h", preludeGPU})
}

// preludeText returns what a rendering for t starts with, or "" for a target
// without a prelude of ours. It ends with a newline; the renderer's #line
// follows.
func preludeText(t Target) string {
	var b strings.Builder
	for _, p := range preludeParts(t) {
		b.WriteString(preludeFile(p))
	}
	if b.Len() > 0 {
		b.WriteString("# 1 \"concord/program\"\n")
	}
	return b.String()
}

// preludeFile returns one file with its name. Flag 3 makes it a system header: a
// program's warnings are not the prelude's.
func preludeFile(p preludePart) string {
	return "# 1 \"concord/prelude/" + p.name + "\" 3\n" + p.text
}
