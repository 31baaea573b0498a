package render

import (
	_ "embed"
	"regexp"
	"strings"
	"sync"
)

// The preludes: C++ that defines OpenCL C's types and built-ins for rendered programs. The C++
// targets share types.h, convert.h, math.h, math2.h, integer.h and dot.h. The files before these map the
// cc_m_ and cc_a_ hooks to the target's library; the files after them define the work item. Metal's
// language is another dialect of C++ and has a prelude of its own, but for dot.h.

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
	//go:embed prelude/dot.h
	preludeDot string
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
			{"metal_math.h", preludeMetalMath}, {"metal_math2.h", preludeMetalMath2}, {"metal_integer.h", preludeMetalInteger},
			{"dot.h", preludeDot}}
	default:
		return nil
	}
	parts = append(parts, preludePart{"types.h", preludeTypes})
	if t == Host {
		parts = append(parts, preludePart{"host_float.h", preludeHostFloat})
	}
	parts = append(parts, preludePart{"convert.h", preludeConvert}, preludePart{"math.h", preludeMath},
		preludePart{"math2.h", preludeMath2}, preludePart{"integer.h", preludeInteger}, preludePart{"dot.h", preludeDot})
	if t == Host {
		return append(parts, preludePart{"host.h", preludeHost})
	}
	return append(parts, preludePart{"gpu.h", preludeGPU})
}

// section is a part of a prelude. Only programs that use one of its names contain it. In a prelude's
// files it begins at a line of "//@" and its names, and ends where the next section begins, or at a line of "//@"
// alone. Text outside of sections is part of every program, and uses no section.
type section struct {
	names []string
	uses  []string // the names in its text, and the hooks cc_m_x and cc_t_x of each cc_x of its own
	text  string
}

var identifier = regexp.MustCompile(`\b(?:cc|CC)_\w+`)

// sections cuts the text of a file; what is outside of sections has no names.
func sections(text string) []section {
	list := []section{{}}
	for line := range strings.Lines(text) {
		last := &list[len(list)-1]
		names, begins := strings.CutPrefix(line, "//@")
		switch {
		case begins && last.text == "":
			last.names = append(last.names, strings.Fields(names)...)
		case begins:
			list = append(list, section{names: strings.Fields(names)})
		default:
			last.text += line
		}
	}
	for i := range list {
		s := &list[i]
		s.uses = identifier.FindAllString(s.text, -1)
		for _, name := range s.names {
			name = strings.TrimPrefix(name, "cc_")
			s.uses = append(s.uses, "cc_m_"+name, "cc_t_"+name)
		}
	}
	return list
}

// prelude is a target's whole prelude.
type prelude struct {
	files [][]section
	parts []preludePart
	with  map[string][]*section // by name
}

var preludes = [...]func() *prelude{
	OpenCL: sync.OnceValue(func() *prelude { return readPrelude(OpenCL) }),
	Host:   sync.OnceValue(func() *prelude { return readPrelude(Host) }),
	CUDA:   sync.OnceValue(func() *prelude { return readPrelude(CUDA) }),
	HIP:    sync.OnceValue(func() *prelude { return readPrelude(HIP) }),
	Metal:  sync.OnceValue(func() *prelude { return readPrelude(Metal) }),
}

func readPrelude(t Target) *prelude {
	p := &prelude{parts: preludeParts(t), with: map[string][]*section{}}
	for _, part := range p.parts {
		list := sections(part.text)
		p.files = append(p.files, list)
		for i := range list {
			for _, name := range list[i].names {
				p.with[name] = append(p.with[name], &list[i])
			}
		}
	}
	return p
}

// need adds the sections with some names, and what these need.
func (p *prelude) need(names []string, needed map[*section]bool) {
	for _, name := range names {
		for _, s := range p.with[name] {
			if !needed[s] {
				needed[s] = true
				p.need(s.uses, needed)
			}
		}
	}
}

// preludeText returns the beginning of a rendering for t, or "" for a target without a prelude: the
// sections that the programs, the rest of the rendering, need. It ends with a newline; the renderer's #line follows.
func preludeText(t Target, programs ...string) string {
	p, needed := preludes[t](), map[*section]bool{}
	for _, text := range programs {
		p.need(identifier.FindAllString(text, -1), needed)
	}
	var b strings.Builder
	for i, part := range p.parts {
		b.WriteString(preludeName(part.name))
		for k := range p.files[i] {
			if s := &p.files[i][k]; len(s.names) == 0 || needed[s] {
				b.WriteString(s.text)
			}
		}
	}
	if b.Len() > 0 {
		b.WriteString("# 1 \"concord/program\"\n")
	}
	return b.String()
}

// preludeFile returns one file with its name.
func preludeFile(p preludePart) string { return preludeName(p.name) + p.text }

// preludeName returns a line marker that has a file's name. Flag 3 marks it as a system header, so
// that compilers do not print warnings about it.
func preludeName(name string) string { return "# 1 \"concord/prelude/" + name + "\" 3\n" }
