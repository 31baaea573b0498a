package programs

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Compare returns the place at which two results of a program differ by more than the specification
// allows, and the launch, or "". If one of them is rough, inexact functions are not compared.
func Compare(p *Program, a, b *Result, rough bool) (what string, launch int) {
	if (a.Err == "") != (b.Err == "") {
		return "one fails", -1
	}
	if a.Err != "" {
		return "", -1
	}
	for i, l := range p.Launches {
		if a.Outputs[i] == nil || b.Outputs[i] == nil { // the launch was too large for one of them
			continue
		}
		out := 0
		for _, arg := range l.Args {
			if !arg.Out {
				continue
			}
			x, y := a.Outputs[i][out], b.Outputs[i][out]
			if out++; rough && len(arg.ulps) > 0 {
				continue
			}
			size := arg.kind.size()
			for e := range len(x) / size {
				u, v := bitsOf(x[e*size:], size), bitsOf(y[e*size:], size)
				ulps := 0
				if len(arg.ulps) > 0 {
					// Each may differ by the limit from the exact result, in opposite directions,
					// and the exact result lies between two floats.
					ulps = 2*arg.ulps[e%len(arg.ulps)] + 1
				}
				if u != v && !near(arg.kind, u, v, ulps) {
					where := ""
					if n := len(arg.ulps); n > 0 {
						where = fmt.Sprintf(", limit %d ulp", arg.ulps[e%n])
					}
					return fmt.Sprintf("launch %d: %s items %v group %v: %s[%d]: %s and %s%s", i, l.Kernel, l.Items, l.Group, arg.Name,
						e, show(arg.kind, u), show(arg.kind, v), where), i
				}
			}
		}
	}
	return "", -1
}

func bitsOf(b []byte, size int) uint64 {
	var full [8]byte
	copy(full[:], b[:size])
	return binary.LittleEndian.Uint64(full[:])
}

func value64(k kind, bits uint64) float64 {
	if k == kFloat {
		return float64(math.Float32frombits(uint32(bits)))
	}
	return math.Float64frombits(bits)
}

func show(k kind, bits uint64) string {
	switch {
	case k.float():
		return fmt.Sprintf("%v (%#x)", value64(k, bits), bits)
	case k.signed():
		shift := 64 - 8*k.size()
		return fmt.Sprintf("%d (%#x)", int64(bits<<shift)>>shift, bits)
	}
	return fmt.Sprintf("%d (%#x)", bits, bits)
}

// near reports whether two floats are at most ulps steps apart. All NaNs are equal.
func near(k kind, a, b uint64, ulps int) bool {
	if !k.float() {
		return false
	}
	x, y := value64(k, a), value64(k, b)
	if x != x || y != y {
		return x != x && y != y
	}
	if ulps == 0 {
		return false
	}
	d := steps(k, a) - steps(k, b)
	return d >= -int64(ulps) && d <= int64(ulps)
}

// steps returns the position of a float in the order of all floats.
func steps(k kind, bits uint64) int64 {
	sign := uint64(1) << (8*k.size() - 1)
	if bits&sign != 0 {
		return -int64(bits &^ sign)
	}
	return int64(bits)
}
