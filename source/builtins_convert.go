package source

// convert_T_sat_rte(x) and as_T(x): built-in functions by their names.

import (
	"strconv"
	"strings"

	"github.com/concord-compute/concord/source/internal/tree"
)

// conversion is a call of convert_T or as_T by its name.
type conversion struct {
	as   bool
	to   *tree.Type
	sat  bool
	mode string // "", "_rte", "_rtz", "_rtp" or "_rtn"
}

// conversionOf takes a name such as convert_uchar4_sat_rtz apart.
func conversionOf(name string) (c conversion, ok bool) {
	rest, isConvert := strings.CutPrefix(name, "convert_")
	if !isConvert {
		if rest, c.as = strings.CutPrefix(name, "as_"); !c.as {
			return c, false
		}
	} else {
		for _, m := range []string{"_rte", "_rtz", "_rtp", "_rtn"} {
			if r, found := strings.CutSuffix(rest, m); found {
				rest, c.mode = r, m
			}
		}
		rest, c.sat = strings.CutSuffix(rest, "_sat")
	}
	if alias, found := map[string]string{"size_t": "ulong", "ptrdiff_t": "long", "intptr_t": "long", "uintptr_t": "ulong"}[rest]; found {
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
	c.to = tree.Vector(k, n)
	return c, !(c.sat && !tree.IsIntKind(k))
}

func isConversion(name string) bool {
	_, ok := conversionOf(name)
	return ok
}

var kindByName = func() map[string]tree.Kind {
	m := map[string]tree.Kind{}
	for k := tree.Char; k <= tree.Double; k++ {
		m[k.String()] = k
	}
	return m
}()
