package source

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/concord-compute/concord/source/internal/render"
	"github.com/concord-compute/concord/source/internal/token"
)

// Texts in the language of a target, beside the portable one.

// checkNative checks that texts are for targets that take one, and that each has the unit's kernels.
func (u *Unit) checkNative() error {
	var list token.ErrorList
	for _, t := range slices.Sorted(maps.Keys(u.options.Native)) {
		own := u.options.Native[t]
		if own.Name == "" {
			own.Name = "program." + t.String()
			u.options.Native[t] = own
		}
		if t != CUDA && t != HIP && t != Metal {
			list.Add(Pos{File: own.Name, Line: 1, Col: 1}, "native text", "a text for %s is the portable one", t)
		}
		for _, k := range u.kernels {
			if !regexp.MustCompile(`\b(` + EntryPrefix + `)?` + regexp.QuoteMeta(k.Name) + `\b`).MatchString(own.Text) {
				list.Add(k.Pos, "native text", "the kernel '%s' is not in %s", k.Name, own.Name)
			}
		}
	}
	return list.Err()
}

// nativeText returns a native text as the target's compiler gets it: the kernels get the names of entry points, and
// places are those of the text.
func (u *Unit) nativeText(own File) string {
	var b strings.Builder
	for _, d := range u.options.Defines {
		b.WriteString("#undef " + macroName(d.Name) + "\n#define " + d.Name + " " + d.Value + "\n")
	}
	for _, k := range u.kernels {
		b.WriteString("#define " + k.Name + " " + EntryPrefix + k.Name + "\n")
	}
	b.WriteString(render.LineDirective(Pos{File: own.Name, Line: 1}) + own.Text)
	if !strings.HasSuffix(own.Text, "\n") {
		b.WriteString("\n")
	}
	return b.String()
}

// macroName returns the name of a definition, which may be that of a macro with parameters.
func macroName(name string) string {
	name, _, _ = strings.Cut(name, "(")
	return name
}

// portable returns an error unless every kernel has a portable text, with the places of those that have none.
func (u *Unit) portable(t Target) error {
	var list token.ErrorList
	for _, name := range u.declared {
		list.Add(u.kernels[u.byName[name]].Pos, "kernel", "the kernel '%s' is only declared: it has no text for %s", name, t)
	}
	if err := list.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return nil
}
