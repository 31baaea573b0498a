package render

import (
	"regexp"
	"strings"
)

// PreludeText is for the tests in package render_test.
var PreludeText = preludeText

// WholePrelude is every section of a target's prelude.
func WholePrelude(t Target) string {
	var b strings.Builder
	for _, name := range preludes[t]().names {
		b.WriteString(preludeMarker(name) + preludeFile(name))
	}
	return b.String() + "# 1 \"concord/program\"\n"
}

var definition = regexp.MustCompile(`(?m)^(?:template <[^>]*> )?(?:CC_\w+ )+(?:[\w<>, ]+ )?&?(cc_\w+)\(`)

// Defining returns the names of the sections that define a function, for all functions of a prelude
// but those that are defined outside of sections.
func Defining(t Target) map[string][][]string {
	by := map[string][][]string{}
	for _, file := range preludes[t]().files {
		for _, s := range file {
			seen := map[string]bool{}
			for _, m := range definition.FindAllStringSubmatch(s.text, -1) {
				if name := m[1]; !seen[name] && len(s.names) > 0 {
					seen[name] = true
					by[name] = append(by[name], s.names)
				}
			}
		}
	}
	return by
}
