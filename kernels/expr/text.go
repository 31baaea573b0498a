package expr

// The OpenCL C text of a map.

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Kernel is the name of a map's entry point.
const Kernel = "map"

// Text returns the map as a program of OpenCL C for operands of a rank: 0 for dense ones, else 1 to [MaxRank]. The
// kernel has one item for each element, and items beyond the last do nothing.
func (m *Map) Text(rank int) string {
	var b strings.Builder
	operands := len(m.inputs) + len(m.outputs)
	b.WriteString(m.preamble())
	if rank > 0 {
		fmt.Fprintf(&b, "typedef struct {\n  long dims[%d];\n  long first[%d];\n  long steps[%d];\n} layout;\n", rank, operands, rank*operands)
	}
	b.WriteString("kernel void " + Kernel + "(")
	for i, t := range m.inputs {
		fmt.Fprintf(&b, "global const %s *in%d, ", types[t].cl, i)
	}
	for i, o := range m.outputs {
		fmt.Fprintf(&b, "global %s *out%d, ", types[o.elem].cl, i)
	}
	for i, t := range m.params {
		fmt.Fprintf(&b, "%s p%d, ", types[t].cl, i)
	}
	if rank == 0 {
		b.WriteString("ulong n) {\n  size_t i = get_global_id(0);\n  if (i >= n)\n    return;\n")
	} else {
		b.WriteString("layout l) {\n")
		b.WriteString(positions(rank, operands))
	}
	place := func(k int) string {
		if rank == 0 {
			return "i"
		}
		return "at" + strconv.Itoa(k)
	}
	for i := range m.nodes {
		n := &m.nodes[i]
		switch n.op {
		case opConst: // written where it is used
			continue
		case opInput:
			fmt.Fprintf(&b, "  %s v%d = %s;\n", types[n.typ].value, i, load(n.elem, fmt.Sprintf("in%d", n.slot), place(n.slot)))
		default:
			fmt.Fprintf(&b, "  %s v%d = %s;\n", types[n.typ].value, i, m.term(n))
		}
	}
	for i, o := range m.outputs {
		b.WriteString("  " + store(o.elem, fmt.Sprintf("out%d", i), place(len(m.inputs)+i), m.name(o.node)) + ";\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// positions computes the element's place in each operand, at0 and so on, from its coordinates, the last of which
// changes fastest.
func positions(rank, operands int) string {
	var b strings.Builder
	b.WriteString("  size_t i = get_global_id(0);\n  size_t n = (size_t)l.dims[0]")
	for j := 1; j < rank; j++ {
		fmt.Fprintf(&b, " * (size_t)l.dims[%d]", j)
	}
	b.WriteString(";\n  if (i >= n)\n    return;\n  size_t rest = i;\n")
	for j := rank - 1; j > 0; j-- {
		fmt.Fprintf(&b, "  long c%d = (long)(rest %% (size_t)l.dims[%d]);\n  rest /= (size_t)l.dims[%d];\n", j, j, j)
	}
	b.WriteString("  long c0 = (long)rest;\n")
	for k := range operands {
		fmt.Fprintf(&b, "  long at%d = l.first[%d]", k, k)
		for j := range rank {
			fmt.Fprintf(&b, " + c%d * l.steps[%d]", j, k*rank+j)
		}
		b.WriteString(";\n")
	}
	return b.String()
}

// preamble returns the definitions of the functions that the text calls.
func (m *Map) preamble() string {
	var b strings.Builder
	var bf16, random, double bool
	for _, n := range m.nodes {
		bf16 = bf16 || n.op == opInput && n.elem == BF16
		random = random || n.op == opRandom
		double = double || n.typ == F64
	}
	for _, o := range m.outputs {
		bf16 = bf16 || o.elem == BF16
	}
	if double {
		b.WriteString("#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n")
	}
	if bf16 {
		b.WriteString(`ushort bf16_of(float x) {
  uint b = as_uint(x);
  if ((b & 0x7fffffffu) > 0x7f800000u)
    return (ushort)(b >> 16 | 0x40u);
  return (ushort)((b + 0x7fffu + (b >> 16 & 1u)) >> 16);
}
`)
	}
	if random {
		b.WriteString(`uint philox(ulong seed, ulong counter, uint stream, uint lane) {
  uint4 c = (uint4)((uint)counter, (uint)(counter >> 32), stream, 0u);
  uint k0 = (uint)seed, k1 = (uint)(seed >> 32);
  for (int i = 0; i < 10; i++) {
    uint hi0 = mul_hi(0xD2511F53u, c.x), lo0 = 0xD2511F53u * c.x;
    uint hi1 = mul_hi(0xCD9E8D57u, c.z), lo1 = 0xCD9E8D57u * c.z;
    c = (uint4)(hi1 ^ c.y ^ k0, lo1, hi0 ^ c.w ^ k1, lo0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return lane == 0u ? c.x : lane == 1u ? c.y : lane == 2u ? c.z : c.w;
}
`)
	}
	return b.String()
}

func load(t Type, p, at string) string {
	switch t {
	case F16:
		return fmt.Sprintf("vload_half(%s, %s)", at, p)
	case BF16:
		return fmt.Sprintf("as_float((uint)%s[%s] << 16)", p, at)
	}
	return fmt.Sprintf("%s[%s]", p, at)
}

func store(t Type, p, at, v string) string {
	switch t {
	case F16:
		return fmt.Sprintf("vstore_half_rte(%s, %s, %s)", v, at, p)
	case BF16:
		return fmt.Sprintf("%s[%s] = bf16_of(%s)", p, at, v)
	}
	return fmt.Sprintf("%s[%s] = (%s)%s", p, at, types[t].cl, v)
}

// name returns the text of a node in the operations that use it: a variable, or a number written out.
func (m *Map) name(i int) string {
	if n := &m.nodes[i]; n.op == opConst {
		return literal(n.typ, n.bits)
	}
	return "v" + strconv.Itoa(i)
}

func literal(t Type, bits uint64) string {
	switch t {
	case F32:
		if x := float64(math.Float32frombits(uint32(bits))); math.Abs(x) < math.MaxFloat32 && math.Abs(x) >= 0x1p-126 || bits == 0 {
			return "(" + strconv.FormatFloat(x, 'e', -1, 32) + "f)"
		}
		return fmt.Sprintf("as_float(0x%08xu)", bits)
	case F64:
		if x := math.Float64frombits(bits); math.Abs(x) < math.MaxFloat64 && math.Abs(x) >= 0x1p-1022 || bits == 0 {
			return "(" + strconv.FormatFloat(x, 'e', -1, 64) + ")"
		}
		return fmt.Sprintf("as_double(0x%016xul)", bits)
	case Bool:
		return strconv.FormatUint(bits, 10)
	}
	suffix := map[Type]string{I8: "", I16: "", I32: "", I64: "l", U8: "u", U16: "u", U32: "u", U64: "ul"}[t]
	if lo, _ := t.ends(); t.kind() == signed && int64(bits) == lo { // the literal without its minus sign would be out of range
		return fmt.Sprintf("((%s)(-%d%s - 1))", types[t].cl, uint64(lo+1)*math.MaxUint64, suffix)
	}
	if t.kind() == signed {
		return fmt.Sprintf("((%s)%d%s)", types[t].cl, int64(bits), suffix)
	}
	return fmt.Sprintf("((%s)%d%s)", types[t].cl, bits, suffix)
}

// infix has the operations that are operators of OpenCL C.
var infix = [opEnd]string{Add: "+", Sub: "-", Mul: "*", Div: "/", Rem: "%", And: "&", Or: "|", Xor: "^",
	Eq: "==", Ne: "!=", Lt: "<", Le: "<="}

// term returns the right side of a node's definition.
func (m *Map) term(n *node) string {
	info := &ops[n.op]
	var a [3]string
	for j, i := range n.args[:info.arity] {
		a[j] = m.name(i)
	}
	var from Type
	if info.arity > 0 {
		from = m.nodes[n.args[info.arity-1]].typ
	}
	t := &types[n.typ]
	switch n.op {
	case opParam:
		return "p" + strconv.Itoa(n.slot)
	case opIndex:
		return "(long)i"
	case opRandom:
		return fmt.Sprintf("philox(%s, (ulong)i, %du, %du)", a[0], uint32(n.bits>>2), n.bits&3)
	case Select:
		return fmt.Sprintf("%s ? %s : %s", a[0], a[1], a[2])
	case Bits:
		return fmt.Sprintf("as_%s(%s)", t.cl, a[0])
	case Cast:
		return castText(n.typ, from, a[0])
	case IsNaN:
		return fmt.Sprintf("isnan(%s) != 0", a[0])
	case Min, Max:
		sign := "<"
		if n.op == Max {
			sign = ">"
		}
		if n.typ.float() {
			return fmt.Sprintf("%s %s %s || isnan(%s) ? %s : %s", a[0], sign, a[1], a[0], a[0], a[1])
		}
		return fmt.Sprintf("%s %s %s ? %s : %s", a[0], sign, a[1], a[0], a[1])
	}
	if info.truth {
		return fmt.Sprintf("%s %s %s", a[0], infix[n.op], a[1])
	}
	if n.typ.float() {
		switch {
		case n.op == Neg:
			return "-" + a[0]
		case n.op == Abs:
			return fmt.Sprintf("fabs(%s)", a[0])
		case n.op == Sigmoid:
			return fmt.Sprintf("1 / (1 + exp(-%s))", a[0])
		case info.call != "":
			return fmt.Sprintf("%s(%s)", info.call, strings.Join(a[:info.arity], ", "))
		}
		return fmt.Sprintf("%s %s %s", a[0], infix[n.op], a[1])
	}
	if n.typ == Bool {
		if n.op == Not {
			return "!" + a[0]
		}
		return fmt.Sprintf("%s %s %s", a[0], infix[n.op], a[1])
	}
	return intText(n, a)
}

// intText returns the text of an operation on integers, in an unsigned type of at least 32 bits, whose overflow is
// defined.
func intText(n *node, a [3]string) string {
	t := &types[n.typ]
	wide, bits := "uint", t.bits
	if bits == 64 {
		wide = "ulong"
	}
	u := func(s string) string { return "(" + wide + ")" + s }
	back := func(s string) string { return fmt.Sprintf("(%s)(%s)", t.cl, s) }
	zero := "(" + t.cl + ")0"
	switch n.op {
	case Neg:
		return back("0 - " + u(a[0]))
	case Not:
		return back("~" + u(a[0]))
	case Abs:
		if n.typ.kind() == unsigned {
			return a[0]
		}
		return fmt.Sprintf("%s < 0 ? %s : %s", a[0], back("0 - "+u(a[0])), a[0])
	case Div, Rem:
		plain := back(a[0] + " " + infix[n.op] + " " + a[1])
		if n.typ.kind() == unsigned {
			return fmt.Sprintf("%s == 0 ? %s : %s", a[1], zero, plain)
		}
		minus := back("0 - " + u(a[0]))
		if n.op == Rem {
			minus = zero
		}
		return fmt.Sprintf("%s == 0 ? %s : %s == -1 ? %s : %s", a[1], zero, a[1], minus, plain)
	case Shl:
		return back(fmt.Sprintf("%s << (%s & %du)", u(a[0]), u(a[1]), bits-1))
	case Shr:
		return back(fmt.Sprintf("%s >> (%s & %du)", a[0], u(a[1]), bits-1))
	}
	return back(u(a[0]) + " " + infix[n.op] + " " + u(a[1]))
}

func castText(to, from Type, a string) string {
	t := &types[to]
	switch {
	case from == Bool:
		return fmt.Sprintf("(%s)%s", t.cl, a)
	case to.float():
		return fmt.Sprintf("convert_%s(%s)", t.cl, a)
	case from.float(): // devices differ in the result of a saturating conversion of a NaN
		zero := "0.0f"
		if from == F64 {
			zero = "0.0"
		}
		return fmt.Sprintf("convert_%s_sat(isnan(%s) ? %s : %s)", t.cl, a, zero, a)
	}
	return fmt.Sprintf("convert_%s_sat(%s)", t.cl, a)
}
