package source

import (
	_ "embed"
	"strings"
)

// The preludes: C++ that gives a rendered program OpenCL C's types and built-ins.
// types.h, convert.h, math.h, math2.h and integer.h are shared by the C++ targets;
// what stands before them maps the cc_m_ and cc_a_ hooks to the target's library,
// what stands after them is the work item.

var (
	//go:embed prelude/abi.h
	preludeABI string
	//go:embed prelude/host_math.h
	preludeHostMath string
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
)

// preludeText returns what a rendering for t starts with, or "" for a target
// without a prelude of ours. It ends with a newline; the renderer's #line
// follows.
func preludeText(t Target) string {
	if t != Host {
		return ""
	}
	var b strings.Builder
	for _, p := range []struct{ name, text string }{
		{"abi.h", preludeABI}, {"host_math.h", preludeHostMath}, {"types.h", preludeTypes},
		{"convert.h", preludeConvert}, {"math.h", preludeMath}, {"math2.h", preludeMath2},
		{"integer.h", preludeInteger}, {"host.h", preludeHost},
	} {
		// Flag 3 makes it a system header: a program's warnings are not the prelude's.
		b.WriteString("# 1 \"concord/prelude/" + p.name + "\" 3\n")
		b.WriteString(p.text)
	}
	b.WriteString("# 1 \"concord/program\"\n")
	return b.String()
}
