package tensor

// Tensors as text.

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// edge is how many elements at each end of a dimension String shows, if it has more than twice as many.
const edge = 3

// String returns the type and the shape, and of a tensor that has been computed its elements in rows, of long
// dimensions those at both ends. Of one that has not been computed it says what computes it; String computes
// nothing but what it shows.
func (t *Tensor) String() string {
	if t.err != nil {
		return "error: " + t.err.Error()
	}
	head := Spec{t.typ, t.shape}.String()
	e := t.scope.engine
	e.mu.Lock()
	computed, closed := t.data != nil && t.data.load == nil, t.scope.closed
	e.mu.Unlock()
	switch {
	case closed:
		return head + " of a closed scope"
	case !computed:
		return head + " = " + name(t) + ", not computed"
	case t.Len() == 0:
		return head + " []"
	}
	part, cut := t, make([]bool, len(t.shape))
	for i, n := range t.shape {
		if n > 2*edge {
			part, cut[i] = Concat(i, part.Narrow(i, 0, edge), part.Narrow(i, n-edge, edge)), true
		}
	}
	if part == t {
		part = t.Copy()
	}
	raw, err := part.bytes(context.Background())
	if err != nil {
		return head + ": " + err.Error()
	}
	words, width := make([]string, part.Len()), 0
	for i := range words {
		words[i] = word(t.typ, raw[i*size(t.typ):])
		width = max(width, len(words[i]))
	}
	var b strings.Builder
	b.WriteString(head)
	if len(t.shape) < 2 {
		b.WriteByte(' ')
	} else {
		b.WriteByte('\n')
	}
	var write func(axis int, words []string)
	write = func(axis int, words []string) {
		if axis == len(part.shape) {
			fmt.Fprintf(&b, "%*s", width, words[0])
			return
		}
		n, below := part.shape[axis], len(part.shape)-axis-1
		each := len(words) / n
		between := strings.Repeat("\n", below) + strings.Repeat(" ", min(below, 1)*axis+1)
		b.WriteByte('[')
		for i := range n {
			if i > 0 {
				b.WriteString(between)
			}
			if cut[axis] && i == edge {
				b.WriteString("..." + between)
			}
			write(axis+1, words[i*each:(i+1)*each])
		}
		b.WriteByte(']')
	}
	write(0, words)
	return b.String()
}

// word returns the first element of raw as text.
func word(t Type, raw []byte) string {
	f := func(x float64, bits int) string {
		if x == math.Trunc(x) && math.Abs(x) < 1e6 {
			return strconv.FormatFloat(x, 'f', 0, bits) + "."
		}
		return strconv.FormatFloat(x, 'g', 5, bits)
	}
	switch t {
	case F64:
		return f(float(t, raw), 64)
	case F32, F16, BF16:
		return f(float(t, raw), 32)
	case U64:
		return strconv.FormatUint(binary.NativeEndian.Uint64(raw), 10)
	case Bool:
		return strconv.FormatBool(raw[0] != 0)
	}
	return strconv.FormatInt(integer(t, raw), 10)
}
