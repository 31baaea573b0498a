package render

import (
	"embed"
	"regexp"
	"strings"
	"sync"

	"github.com/concord-compute/concord/source/host"
)

// The preludes: C++ that defines OpenCL C's types and built-ins for rendered programs. All targets share types.h,
// vectors.h, convert.h, math.h, math2.h, integer.h and dot.h. The files before and between these are the target's own:
// they map the cc_m_ and cc_a_ hooks to its library. Metal's language is another dialect of C++, with address
// spaces and without double; the C++ targets share what that takes. The files after these define the work item.
//
//go:embed prelude/*.h
var preludeFiles embed.FS

// preludeNames lists the files of each target's prelude, in order.
var preludeNames = [...]string{
	OpenCL: "",
	Host:   "abi host_math types cpp host_float vectors convert double math math2 integer dot host",
	CUDA:   "cuda gpu_math types cpp vectors convert double math math2 integer dot gpu",
	HIP:    "hip gpu_math types cpp vectors convert double math math2 integer dot gpu",
	Metal:  "metal types metal_types vectors metal_math convert math math2 integer dot",
}

// preludeFile returns the text of one file. Its name has to be one of prelude's, without the extension.
func preludeFile(name string) string {
	text, err := host.Files.ReadFile(name + ".h")
	if err != nil {
		text, err = preludeFiles.ReadFile("prelude/" + name + ".h")
	}
	if err != nil {
		panic(err)
	}
	return string(text)
}

// preludeMarker returns the line that names a file for compilers. Flag 3 marks it as a system header, so
// that compilers do not print warnings about it.
func preludeMarker(name string) string { return "# 1 \"concord/prelude/" + name + ".h\" 3\n" }

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
	names []string
	files [][]section
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
	p := &prelude{names: strings.Fields(preludeNames[t]), with: map[string][]*section{}}
	for _, file := range p.names {
		list := sections(preludeFile(file))
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
	for i, name := range p.names {
		b.WriteString(preludeMarker(name))
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
