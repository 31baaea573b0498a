//go:build cgo && opencl && (linux || darwin)

package opencl

// The text that an OpenCL compiler gets, and its log.

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// text returns the text of a unit for the device's compiler.
func (d *device) text(ctx context.Context, unit *source.Unit) (string, error) {
	text, err := unit.RenderContext(ctx, source.OpenCL)
	if err != nil {
		return "", err
	}
	if unit.Expanded() { // the definitions are already applied
		return d.dimensions() + text, nil
	}
	return d.dimensions() + header(unit) + text, nil
}

// offsetsText is the rendering that takes offsets, which is preprocessed.
func (d *device) offsetsText(unit *source.Unit) (string, error) {
	text, err := unit.RenderOffsets()
	return d.dimensions() + text, err
}

// dimensions returns macros that correct the id functions of drivers that handle a dimension above
// 2 wrongly: PoCL 3.1 returns 0 for sizes, and rusticl of Mesa 22 ends the process when the kernel
// is created.
func (d *device) dimensions() string {
	if d.platform.name != pocl && d.platform.name != rusticl {
		return ""
	}
	var b strings.Builder
	for _, f := range []struct{ name, beyond string }{
		{"get_global_size", "1"}, {"get_local_size", "1"}, {"get_num_groups", "1"},
		{"get_global_id", "0"}, {"get_local_id", "0"}, {"get_group_id", "0"}, {"get_global_offset", "0"},
	} {
		// A macro is not expanded again within itself, so the name in its body is the function. The
		// inner conditional keeps the compiler from seeing a constant index above 2; the compiler
		// folds the outer one.
		fmt.Fprintf(&b, "#define %s(d) ((uint)(d) < 3u ? %s((uint)(d) < 3u ? (d) : 0) : (size_t)%s)\n", f.name, f.name,
			f.beyond)
	}
	return b.String()
}

// header returns the unit's definitions. They are lines of text and not -D options, because drivers
// split options at blanks, each with different rules for quotes, and rusticl crashes if the quotes
// are wrong.
//
// It also defines the extension macros as the front end did; otherwise the front end and the driver
// would compile different programs.
func header(unit *source.Unit) string {
	var b strings.Builder
	has := unit.Features()
	for _, f := range []struct {
		macro string
		on    bool
	}{
		{"cl_khr_fp64", has.FP64}, {"cl_khr_fp16", has.FP16},
		{"cl_khr_int64_base_atomics", has.Int64Atomic}, {"cl_khr_int64_extended_atomics", has.Int64Atomic},
	} {
		b.WriteString("#undef " + f.macro + "\n")
		if f.on {
			b.WriteString("#define " + f.macro + " 1\n")
		}
	}
	oneLine := strings.NewReplacer("\r", " ", "\n", " ")
	for _, def := range unit.Defines() {
		b.WriteString("#undef " + macroName(def.Name) + "\n#define " + def.Name + " " + oneLine.Replace(def.Value) + "\n")
	}
	return b.String()
}

// macroName returns the name of a definition without its parameters: "F" for "F(x)".
func macroName(s string) string {
	name, _, _ := strings.Cut(s, "(")
	return name
}

// buildOptions joins the options. They are passed to the compiler unchanged; a word that is not an
// option is an error, because rusticl treats it as a file and crashes.
func (d *device) buildOptions(unit *source.Unit, options []string) (string, error) {
	for _, o := range options {
		if !strings.HasPrefix(o, "-") || strings.ContainsAny(o, " \t\r\n\x00\"'\\") {
			return "", d.errorf("build "+unit.Name(), driver.ErrInvalidArgument,
				"build option %q: each is one word that begins with -; values with blanks are definitions of the program", o)
		}
	}
	return strings.Join(append([]string{standard}, options...), " "), nil
}

var (
	lineDirective = regexp.MustCompile(`^[ \t]*#[ \t]*(?:line[ \t]+)?(\d+)[ \t]+"((?:[^"\\]|\\.)*)"`)
	// position matches "file:line:column:", in PoCL's logs with "error: " in front.
	position = regexp.MustCompile(`^((?:error|warning|note): )?(.+?):(\d+):(\d+): `)
)

// mapLog rewrites the positions in a compiler's log to the files and lines of the portable text, in
// the form "file:line:column: error: message". Compilers that follow #line already report such
// positions; others report a line of the text that they were sent.
func mapLog(log, name, sent string) string {
	lines := strings.Split(log, "\n")
	var places []place
	for i, line := range lines {
		m := position.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		severity, file, at := m[1], m[2], m[3]
		rest := line[len(m[0]):]
		if places == nil {
			places = placesOf(sent)
		}
		if !known(places, file) {
			n, _ := strconv.Atoi(at)
			if n < 1 || n > len(places) || places[n-1].file == "" {
				file = name
			} else {
				file, at = places[n-1].file, strconv.Itoa(places[n-1].line)
			}
		}
		lines[i] = file + ":" + at + ":" + m[4] + ": " + severity + rest
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// place is the origin of a line of the text that was sent.
type place struct {
	file string
	line int
}

func placesOf(sent string) []place {
	var list []place
	var at place
	for line := range strings.Lines(sent) {
		list = append(list, at)
		if m := lineDirective.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[1])
			at = place{strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(m[2]), n}
		} else if at.file != "" {
			at.line++
		}
	}
	return list
}

func known(places []place, file string) bool {
	for _, p := range places {
		if p.file == file {
			return true
		}
	}
	return false
}
