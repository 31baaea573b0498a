//go:build cgo && opencl && (linux || darwin)

package opencl

// What an OpenCL compiler gets to read, and what it says about it.

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// text returns what the device's compiler gets of a unit.
func (d *device) text(ctx context.Context, unit *source.Unit) (string, error) {
	text, err := unit.RenderContext(ctx, source.OpenCL)
	if err != nil {
		return "", err
	}
	if unit.Expanded() { // the definitions are used up
		return d.dimensions() + text, nil
	}
	return d.dimensions() + header(unit) + text, nil
}

// offsetsText is the rendering that takes offsets, which is preprocessed.
func (d *device) offsetsText(unit *source.Unit) (string, error) {
	text, err := unit.RenderOffsets()
	return d.dimensions() + text, err
}

// dimensions mends the id functions of drivers that do not know what they return
// for a dimension that is not there: PoCL 3.1 says 0 for sizes, rusticl of Mesa
// 22 ends the process when the kernel is made.
func (d *device) dimensions() string {
	if d.platform.name != pocl && d.platform.name != rusticl {
		return ""
	}
	var b strings.Builder
	for _, f := range []struct{ name, beyond string }{
		{"get_global_size", "1"}, {"get_local_size", "1"}, {"get_num_groups", "1"},
		{"get_global_id", "0"}, {"get_local_id", "0"}, {"get_group_id", "0"}, {"get_global_offset", "0"},
	} {
		// A macro is not expanded again in itself. The inner choice keeps an index
		// that is constant out of the compiler's sight, the outer one is folded.
		fmt.Fprintf(&b, "#define %s(d) ((uint)(d) < 3u ? %s((uint)(d) < 3u ? (d) : 0) : (size_t)%s)\n", f.name, f.name, f.beyond)
	}
	return b.String()
}

// header holds the unit's definitions. As lines of text, because drivers split
// -D options at blanks, each with a quoting of its own, and rusticl crashes where
// that goes wrong.
//
// It also makes the device answer the extension macros as the front end did, or
// the two would see different programs.
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

// macroName cuts the parameters off "F(x)".
func macroName(s string) string {
	name, _, _ := strings.Cut(s, "(")
	return name
}

// buildOptions joins the options. They go to the compiler as they are, but what
// is no option at all is kept from it: rusticl takes it for a file and crashes.
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
	// position finds "file:line:column:", PoCL's with "error: " in front.
	position = regexp.MustCompile(`^((?:error|warning|note): )?(.+?):(\d+):(\d+): `)
)

// mapLog rewrites a compiler's positions to the files and lines of the portable
// text, in the one form "file:line:column: error: message". Compilers that follow
// #line have done most of it; others give a line of the text they were sent.
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

// place is where a line of the text that was sent comes from.
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
