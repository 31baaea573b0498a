//go:build cgo && unix

package cgo

// Reasons: why there is no device or no compiler, in one sentence. Probe.Tried has all messages of
// the loader.

import "strings"

// noDriver is the reason when there is no driver to call.
func (b *backend) noDriver(l library) string {
	drivers, _ := b.v.Libraries(l.cfg)
	return "no " + b.maker() + " driver: " + sought(drivers, l.tried) + remedy(b.v.Remedies.Driver)
}

// noCompiler is the reason when there is no compiler. The driver's library may contain the
// compiler.
func (b *backend) noCompiler(l library) string {
	drivers, compilers := b.v.Libraries(l.cfg)
	if len(compilers) == 0 {
		compilers = drivers
	}
	return "no " + b.maker() + " compiler: " + sought(compilers, l.tried) + remedy(b.v.Remedies.Compiler)
}

// maker returns the name of the maker whose library is missing.
func (b *backend) maker() string {
	if b.v.Simulated {
		return "simulated " + b.v.Maker
	}
	return b.v.Maker
}

func remedy(text string) string {
	if text == "" {
		return ""
	}
	return "; " + text
}

// sought describes the outcome for each candidate library: only the name if it does not exist, and
// the error if it does.
func sought(names, tried []string) string {
	var absent, broken []string
	for _, name := range names {
		outcome := "not found"
		for _, line := range tried {
			if rest, ok := strings.CutPrefix(line, name+": "); ok {
				outcome = rest
			}
		}
		switch {
		case isAbsent(name, outcome):
			absent = append(absent, name)
		case outcome != found:
			broken = append(broken, name+": "+outcome)
		}
	}
	switch len(absent) {
	case 0:
	case 1:
		broken = append(broken, absent[0]+" was not found")
	default:
		broken = append(broken, "none of "+strings.Join(absent, ", ")+" was found")
	}
	if len(broken) == 0 {
		return "the library cannot be used"
	}
	return strings.Join(broken, "; ")
}

// found is the outcome of a candidate that was opened.
const found = "found"

// isAbsent reports whether a library does not exist, as opposed to one that fails to load, by the
// messages of the loaders of glibc and musl. If a library that it depends on is missing, the
// message names that one.
func isAbsent(name, outcome string) bool {
	why, ok := strings.CutPrefix(outcome, "not found")
	why = strings.TrimPrefix(why, ": ")
	return ok && (why == "" || strings.HasPrefix(why, "cannot open shared object file: No such file") ||
		strings.HasPrefix(why, "Error loading shared library "+name+": No such file"))
}
