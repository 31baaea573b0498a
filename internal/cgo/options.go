package cgo

// The options of programs, which are given in the words of OpenCL or of the vendor's compiler.

import (
	"fmt"
	"regexp"

	"github.com/concord-compute/concord/runtime/driver"
)

// Dialect says how a compiler takes the options of programs. The patterns match whole options. Both are set.
type Dialect struct {
	Instead map[string][]string // the compiler's options for one of OpenCL or GCC
	Own     *regexp.Regexp      // the compiler's options that a program may use
	// Ignored are options without effect: they permit or request something that the compiler does anyway.
	Ignored *regexp.Regexp
}

// Translate returns the compiler's options for those of a program. An unknown one is ErrInvalidArgument.
func (d Dialect) Translate(list []string) (out []string, err error) {
	for _, o := range list {
		instead, known := d.Instead[o]
		switch {
		case known:
			out = append(out, instead...)
		case d.Own.MatchString(o):
			out = append(out, o)
		case !d.Ignored.MatchString(o):
			return nil, fmt.Errorf("option %q: %w", o, driver.ErrInvalidArgument)
		}
	}
	return out, nil
}
