package render

import (
	_ "embed"
	"strings"
)

// The preludes: C++ that defines OpenCL C's types and built-ins for rendered programs. The C++
// targets share types.h, convert.h, math.h, math2.h and integer.h. The files before these map the
// cc_m_ and cc_a_ hooks to the target's library; the files after them define the work item. Metal's
// language is another dialect of C++ and has a prelude of its own.

var (
	//go:embed prelude/abi.h
	preludeABI string
	//go:embed prelude/host_math.h
	preludeHostMath string
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
	parts = append(parts, preludePart{"types.h", preludeTypes}, preludePart{"convert.h", preludeConvert},
		preludePart{"math.h", preludeMath}, preludePart{"math2.h", preludeMath2},
		preludePart{"integer.h", preludeInteger})
	if t == Host {
		return append(parts, preludePart{"host.h", preludeHost})
	}
	return append(parts, preludePart{"gpu.h", preludeGPU})
}

// preludeText returns the beginning of a rendering for t, or "" for a target without a prelude. It
// ends with a newline; the renderer's #line follows.
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

// preludeFile returns one file with a line marker that has its name. Flag 3 marks it as a system
// header, so that compilers do not print warnings about it.
func preludeFile(p preludePart) string {
	return "# 1 \"concord/prelude/" + p.name + "\" 3\n" + p.text
}
