package builtins

// Explicit conversions, convert_T_sat_rte(x) and as_T(x), which are recognized by the form of their
// names.

import (
	"strconv"
	"strings"

	"github.com/concord-compute/concord/source/internal/tree"
)

// Conversion is a call of convert_T or as_T by its name.
type Conversion struct {
	As   bool
	To   *tree.Type
	Sat  bool
	Mode string // "", "_rte", "_rtz", "_rtp" or "_rtn"
}

// ConversionOf splits a name such as convert_uchar4_sat_rtz into its parts.
func ConversionOf(name string) (c Conversion, ok bool) {
	rest, isConvert := strings.CutPrefix(name, "convert_")
	if !isConvert {
		if rest, c.As = strings.CutPrefix(name, "as_"); !c.As {
			return c, false
		}
	} else {
		for _, m := range []string{"_rte", "_rtz", "_rtp", "_rtn"} {
			if r, found := strings.CutSuffix(rest, m); found {
				rest, c.Mode = r, m
			}
		}
		rest, c.Sat = strings.CutSuffix(rest, "_sat")
	}
	if alias, found := map[string]string{"size_t": "ulong", "ptrdiff_t": "long", "intptr_t": "long",
		"uintptr_t": "ulong"}[rest]; found {
		rest = alias
	}
	letters := strings.TrimRight(rest, "0123456789")
	k, found := kindByName[letters]
	if !found {
		return c, false
	}
	n := 1
	if digits := rest[len(letters):]; digits != "" {
		n, _ = strconv.Atoi(digits)
		if n != 2 && n != 3 && n != 4 && n != 8 && n != 16 || digits[0] == '0' {
			return c, false
		}
	}
	c.To = tree.Vector(k, n)
	return c, !(c.Sat && !tree.IsIntKind(k))
}

// IsConversion reports whether name is that of an existing explicit conversion.
func IsConversion(name string) bool {
	_, ok := ConversionOf(name)
	return ok
}

var kindByName = func() map[string]tree.Kind {
	m := map[string]tree.Kind{}
	for k := tree.Char; k <= tree.Double; k++ {
		m[k.String()] = k
	}
	return m
}()
