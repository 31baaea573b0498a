package stress

// The arguments of a run as text, and its outputs as text.

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// arg is one argument of a run.
type arg struct {
	local       int // bytes of local memory, if it is that
	buffer, out bool
	typ         string // of the elements
	data        []byte // of a value, or the contents of a buffer
}

func parseArg(text string) (a arg, err error) {
	head, rest, _ := strings.Cut(text, ":")
	switch head {
	case "local":
		a.local, err = strconv.Atoi(rest)
		return a, err
	case "buf", "out":
		a.buffer, a.out = true, head == "out"
		head, rest, _ = strings.Cut(rest, ":")
	}
	a.typ = head
	if width(a.typ) == 0 {
		return a, fmt.Errorf("argument %q is of no known type", text)
	}
	n := strings.Count(rest, ",") + 1
	if a.buffer {
		count, how, filled := strings.Cut(rest, ":")
		if n, err = strconv.Atoi(count); err != nil {
			return a, err
		}
		if rest = how; !filled {
			rest = "zero"
		}
	}
	a.data = make([]byte, n*width(a.typ))
	return a, fill(a.data, a.typ, rest)
}

// splitArgs splits a list of arguments only at commas after which an argument begins, since values
// may contain commas.
func splitArgs(s string) []string {
	var args []string
	for part := range strings.SplitSeq(s, ",") {
		if strings.Contains(part, ":") || len(args) == 0 {
			args = append(args, part)
		} else {
			args[len(args)-1] += "," + part
		}
	}
	return args
}

func dims(s string) (d [3]int, err error) {
	d = [3]int{1, 1, 1}
	parts := strings.Split(s, ",")
	if len(parts) > 3 {
		return d, fmt.Errorf("%d dimensions in %q", len(parts), s)
	}
	for i, part := range parts {
		if d[i], err = strconv.Atoi(part); err != nil {
			return d, err
		}
	}
	return d, nil
}

// width returns the bytes of an element, 0 if there is no such type.
func width(typ string) int {
	n, _ := strconv.Atoi(strings.TrimLeft(typ, "iuf"))
	return n / 8
}

// put writes element i: integers from v, floating ones from f.
func put(data []byte, typ string, i int, f float64, v uint64) {
	if typ == "f32" {
		v = uint64(math.Float32bits(float32(f)))
	} else if typ == "f64" {
		v = math.Float64bits(f)
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	copy(data[i*width(typ):(i+1)*width(typ)], b[:])
}

// fill sets data; how is zero, iota, alt, rand or a list of values.
func fill(data []byte, typ, how string) error {
	n, seed := len(data)/width(typ), uint32(12345)
	switch how {
	case "zero":
	case "iota":
		for i := range n {
			put(data, typ, i, float64(i), uint64(i))
		}
	case "alt":
		for i := range n {
			sign := int64(1)
			if i%2 == 1 {
				sign = -1
			}
			put(data, typ, i, 0.5*float64(sign)*float64(i), uint64(sign*int64(i)))
		}
	case "rand":
		for i := range n {
			seed = seed*1664525 + 1013904223
			put(data, typ, i, float64(seed>>8)/16777216, uint64(seed>>4))
		}
	default:
		values := strings.Split(how, ",")
		if len(values) > n {
			return fmt.Errorf("%d values for %d elements", len(values), n)
		}
		for i, s := range values {
			f, v, err := number(s)
			if err != nil {
				return err
			}
			put(data, typ, i, f, v)
		}
	}
	return nil
}

func number(s string) (float64, uint64, error) {
	if v, err := strconv.ParseInt(s, 0, 64); err == nil {
		return float64(v), uint64(v), nil
	}
	if v, err := strconv.ParseUint(s, 0, 64); err == nil {
		return float64(v), v, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, uint64(int64(f)), err
}

// show formats elements as the driver in C does.
func show(data []byte, typ string) string {
	var out []string
	for i := range len(data) / width(typ) {
		var b [8]byte
		copy(b[:], data[i*width(typ):(i+1)*width(typ)])
		v := binary.LittleEndian.Uint64(b[:])
		shift := 64 - 8*width(typ)
		switch {
		case typ == "f32":
			out = append(out, float(float64(math.Float32frombits(uint32(v))), 9))
		case typ == "f64":
			out = append(out, float(math.Float64frombits(v), 17))
		case typ[0] == 'u':
			out = append(out, strconv.FormatUint(v, 10))
		default:
			out = append(out, strconv.FormatInt(int64(v<<shift)>>shift, 10))
		}
	}
	return strings.Join(out, " ")
}

// float formats as C's %.<digits>g does.
func float(f float64, digits int) string {
	switch {
	case f != f:
		return "nan"
	case math.IsInf(f, 0):
		return strings.TrimPrefix(strings.ToLower(fmt.Sprint(f)), "+")
	}
	return fmt.Sprintf("%.*g", digits, f)
}
