package expr

// The OpenCL C text of a map.

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/runtime/driver"
)

// The entry points of a map's program. One without reductions has [Kernel] alone, which has one item for each element.
// One with reductions has both, which compute the same. In Kernel a group of [kernels.Group] items computes a
// row, which is fast where the elements of a row are contiguous. In KernelColumns one item does, which is fast
// where rows lie side by side.
const (
	Kernel        = "map"
	KernelColumns = "map_columns"
)

// Entry returns the entry point for a launch with a layout, which [Map.Layout] returned, and the number of
// elements or rows, from which kernels.Geometry makes the grid.
func (m *Map) Entry(l *Layout) (kernel string, size int) {
	if !m.Reduces() {
		return Kernel, l.Len()
	}
	rows, _ := l.rows()
	if m.columns(l) {
		return KernelColumns, rows
	}
	return Kernel, rows
}

// Text returns the map as a program of OpenCL C for operands of a rank: 0 for dense ones, else 1 to [MaxRank].
// Items beyond the last element or row do nothing.
func (m *Map) Text(rank int) string {
	t := &writer{m: m, rank: rank, operands: len(m.inputs) + len(m.outputs)}
	t.WriteString(preamble(m))
	if rank > 0 {
		fmt.Fprintf(t, "typedef struct {\n  long dims[%d];\n  long first[%d];\n  long steps[%d];\n} layout;\n", rank,
			t.operands, rank*t.operands)
	}
	if m.Reduces() {
		t.rows()
		t.columns()
	} else {
		t.each()
	}
	return t.String()
}

// each writes the kernel in which an item computes an element.
func (t *writer) each() {
	t.begin("kernel void ", Kernel)
	if t.rank == 0 {
		t.WriteString("  size_t i = get_global_id(0);\n  if (i >= n)\n    return;\n")
	} else {
		t.positions(t.rank, "i", "get_global_id(0)")
	}
	all := t.m.needed(t.m.roots()...)
	t.nodes(func(i int) bool { return all[i] })
	t.stores(func(int) bool { return true }, "")
	t.WriteString("}\n")
}

// roots returns the nodes of all outputs.
func (m *Map) roots() []int {
	var list []int
	for _, o := range m.outputs {
		list = append(list, o.node)
	}
	return list
}

// writer writes the text of a map.
type writer struct {
	strings.Builder
	m              *Map
	rank, operands int
	defined        []bool         // nodes with one value for a row that have been written
	catalog        *catalogKernel // whose kernel it is, or nil for that of a map
}

// dim returns the length of a dimension.
func (t *writer) dim(j int) string {
	if t.catalog == nil {
		return fmt.Sprintf("l.dims[%d]", j)
	}
	return t.catalog.params[t.catalog.dims[j]].name
}

// step returns the stride of an operand in a dimension.
func (t *writer) step(k, j int) string {
	if t.catalog == nil {
		return fmt.Sprintf("l.steps[%d]", k*t.rank+j)
	}
	return t.catalog.step(k, j)
}

// begin writes the head of a kernel.
func (t *writer) begin(words, name string) {
	m := t.m
	t.defined = make([]bool, len(m.nodes))
	if t.catalog != nil {
		t.head(words)
		return
	}
	t.WriteString(words + name + "(")
	for i, e := range m.inputs {
		fmt.Fprintf(t, "global const %s *in%d, ", e.Kind(), i)
	}
	for i, o := range m.outputs {
		fmt.Fprintf(t, "global %s *out%d, ", o.elem.Kind(), i)
	}
	for i, p := range m.params {
		fmt.Fprintf(t, "%s p%d, ", p.Kind(), i)
	}
	if t.rank == 0 {
		t.WriteString("ulong n) {\n")
	} else {
		t.WriteString("layout l) {\n")
	}
}

// place returns the index of the element in the buffer of an operand.
func (t *writer) place(k int) string {
	switch {
	case t.rank == 0:
		return "i"
	case t.m.Reduces() && !t.m.oncePerRow(k):
		return fmt.Sprintf("at%d + (long)j * %s", k, t.step(k, t.rank-1))
	}
	return "at" + strconv.Itoa(k)
}

// nodes writes the definitions of some nodes.
func (t *writer) nodes(which func(i int) bool) {
	for i := range t.m.nodes {
		n := &t.m.nodes[i]
		switch {
		case n.op == opConst || n.op.reduces() || !which(i): // numbers are written where they are used
		case n.op == opInput:
			fmt.Fprintf(t, "  %s v%d = %s;\n", valueType(n.typ), i, load(n.elem, fmt.Sprintf("in%d", n.slot), t.place(n.slot)))
		default:
			fmt.Fprintf(t, "  %s v%d = %s;\n", valueType(n.typ), i, t.m.term(n))
		}
	}
}

// stores writes the stores of some outputs.
func (t *writer) stores(which func(k int) bool, indent string) {
	for i, o := range t.m.outputs {
		if k := len(t.m.inputs) + i; which(k) {
			fmt.Fprintf(t, "  %s%s;\n", indent, store(o.elem, fmt.Sprintf("out%d", i), t.place(k), t.m.name(o.node)))
		}
	}
}

// uniform writes the nodes up to a level that have one value for a row and have not been written.
func (t *writer) uniform(level int) {
	t.nodes(func(i int) bool {
		if !t.m.uniform[i] || t.m.level[i] > level || t.defined[i] {
			return false
		}
		t.defined[i] = true
		return true
	})
}

// inner writes the nodes that the given ones need and that differ within a row.
func (t *writer) inner(roots ...int) {
	need := t.m.needed(roots...)
	t.nodes(func(i int) bool { return need[i] && !t.m.uniform[i] })
}

// positions computes the place of element i in each operand, at0 and so on, from its coordinates in the first rank
// dimensions, the last of which changes fastest. An item without an element returns. In maps with reductions n
// is the length of a row.
func (t *writer) positions(rank int, i, id string) {
	fmt.Fprintf(t, "  size_t %s = %s;\n", i, id)
	count := "1"
	if rank > 0 {
		count = "(size_t)" + t.dim(0)
	}
	for j := 1; j < rank; j++ {
		count += " * (size_t)" + t.dim(j)
	}
	if t.m.Reduces() && t.dim(rank) != "n" { // the parameter n of some named kernels is the length of a row
		fmt.Fprintf(t, "  size_t n = (size_t)%s;\n", t.dim(rank))
	}
	beyond := "return"
	if t.catalog != nil && t.m.Reduces() && len(t.m.outputsBy(false)) > 0 { // for the reason given in group.h
		beyond = i + " = n = 0"
	}
	fmt.Fprintf(t, "  if (%s >= %s)\n    %s;\n  size_t rest = %[1]s;\n", i, count, beyond)
	for j := rank - 1; j > 0; j-- {
		fmt.Fprintf(t, "  long c%d = (long)(rest %% (size_t)%s);\n  rest /= (size_t)%[2]s;\n", j, t.dim(j))
	}
	t.WriteString("  long c0 = (long)rest;\n")
	for k := range t.operands {
		fmt.Fprintf(t, "  long at%d = ", k)
		if t.catalog == nil {
			fmt.Fprintf(t, "l.first[%d]", k)
		} else {
			t.WriteString("0")
		}
		for j := range rank {
			fmt.Fprintf(t, " + c%d * %s", j, t.step(k, j))
		}
		t.WriteString(";\n")
	}
}

// preamble returns the definitions of the functions that the texts of maps call.
func preamble(maps ...*Map) string {
	var b strings.Builder
	var bf16, random, double bool
	odd := map[Type]bool{} // the types from which a number is rounded to odd
	var locates []string   // functions for reductions to places
	for _, m := range maps {
		for _, n := range m.nodes {
			if n.op.locates() {
				if f := firstText(n.op, m.nodes[n.args[0]].typ); !slices.Contains(locates, f) {
					locates = append(locates, f)
				}
			}
			random = random || n.op == opRandom
			double = double || n.typ == F64
			if n.op == opOdd {
				odd[m.nodes[n.args[0]].typ] = true
			}
		}
		for _, o := range m.outputs {
			bf16 = bf16 || o.elem == BF16
		}
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
	for _, t := range driver.Types() {
		if odd[t] {
			b.WriteString(oddText[t])
		}
	}
	b.WriteString(strings.Join(locates, ""))
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
	return fmt.Sprintf("%s[%s] = (%s)%s", p, at, t.Kind(), v)
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
		if x := float64(math.Float32frombits(uint32(bits))); math.Abs(x) < math.MaxFloat32 && math.Abs(x) >= 0x1p-126 ||
			bits == 0 {
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
	// the literal without its minus sign would be out of range
	if lo, _ := ends(t); t.IsSigned() && int64(bits) == lo {
		return fmt.Sprintf("((%s)(-%d%s - 1))", t.Kind(), uint64(lo+1)*math.MaxUint64, suffix)
	}
	if t.IsSigned() {
		return fmt.Sprintf("((%s)%d%s)", t.Kind(), int64(bits), suffix)
	}
	return fmt.Sprintf("((%s)%d%s)", t.Kind(), bits, suffix)
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
	return m.termOf(n, from, a)
}

// termOf is term for operands with the text a, the last of type from.
func (m *Map) termOf(n *node, from Type, a [3]string) string {
	info := &ops[n.op]
	switch n.op {
	case opLength:
		return "(long)n"
	case opParam:
		return "p" + strconv.Itoa(n.slot)
	case opIndex:
		return "(long)i"
	case opRandom:
		return fmt.Sprintf("philox(%s, (ulong)i, %du, %du)", a[0], uint32(n.bits>>2), n.bits&3)
	case Select:
		return fmt.Sprintf("%s ? %s : %s", a[0], a[1], a[2])
	case Bits:
		return fmt.Sprintf("as_%s(%s)", n.typ.Kind(), a[0])
	case Cast:
		return castText(n.typ, from, a[0])
	case opOdd:
		return fmt.Sprintf("odd_%s(%s)", from.Kind(), a[0])
	case IsNaN:
		return fmt.Sprintf("isnan(%s) != 0", a[0])
	case Min, Max:
		sign := "<"
		if n.op == Max {
			sign = ">"
		}
		if n.typ.IsFloat() {
			return fmt.Sprintf("%s %s %s || isnan(%s) ? %s : %s", a[0], sign, a[1], a[0], a[0], a[1])
		}
		return fmt.Sprintf("%s %s %s ? %s : %s", a[0], sign, a[1], a[0], a[1])
	}
	switch {
	case n.typ == Bool && n.op == Not:
		return "!" + a[0]
	case n.typ == Bool:
	case !n.typ.IsFloat():
		return intText(n, a)
	case n.op == Neg:
		return "-" + a[0]
	case n.op == Abs:
		return fmt.Sprintf("fabs(%s)", a[0])
	case n.op == Sigmoid:
		return fmt.Sprintf("1 / (1 + exp(-%s))", a[0])
	case n.op == GELU:
		suffix := "f"
		if n.typ == F64 {
			suffix = ""
		}
		return fmt.Sprintf("%[1]s * (0.5%[2]s * erfc(%[1]s * -0.70710678118654752%[2]s))", a[0], suffix)
	case info.call != "":
		return fmt.Sprintf("%s(%s)", info.call, strings.Join(a[:info.arity], ", "))
	}
	return fmt.Sprintf("%s %s %s", a[0], infix[n.op], a[1])
}

// intText returns the text of an operation on integers, in an unsigned type of at least 32 bits, whose overflow is
// defined.
func intText(n *node, a [3]string) string {
	cl := n.typ.Kind().String()
	wide, bits := "uint", 8*n.typ.Size()
	if bits == 64 {
		wide = "ulong"
	}
	u := func(s string) string { return "(" + wide + ")" + s }
	back := func(s string) string { return fmt.Sprintf("(%s)(%s)", cl, s) }
	zero := "(" + cl + ")0"
	switch n.op {
	case Neg:
		return back("0 - " + u(a[0]))
	case Not:
		return back("~" + u(a[0]))
	case Abs:
		if !n.typ.IsSigned() {
			return a[0]
		}
		return fmt.Sprintf("%s < 0 ? %s : %s", a[0], back("0 - "+u(a[0])), a[0])
	case Div, Rem:
		plain := back(a[0] + " " + infix[n.op] + " " + a[1])
		if !n.typ.IsSigned() {
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
	cl := to.Kind()
	switch {
	case from == Bool:
		return fmt.Sprintf("(%s)%s", cl, a)
	case to.IsFloat():
		return fmt.Sprintf("convert_%s(%s)", cl, a)
	case from.IsFloat(): // devices differ in the result of a saturating conversion of a NaN
		zero := "0.0f"
		if from == F64 {
			zero = "0.0"
		}
		return fmt.Sprintf("convert_%s_sat(isnan(%s) ? %s : %s)", cl, a, zero, a)
	}
	return fmt.Sprintf("convert_%s_sat(%s)", cl, a)
}

// oddText has the functions that round a number to a float to odd: if the float is not exact, its last bit is set. A
// later rounding to 16 bits then has the same result as one rounding of the number.
var oddText = map[Type]string{
	I32: `float odd_int(int x) {
  uint size = x < 0 ? 0u - (uint)x : (uint)x;
  int drop = 8 - (int)clz(size | 1u);
  if (drop > 0)
    size = (size >> drop | (uint)((size & ((1u << drop) - 1u)) != 0u)) << drop;
  return x < 0 ? -(float)size : (float)size;
}
`,
	U32: `float odd_uint(uint x) {
  int drop = 8 - (int)clz(x | 1u);
  if (drop > 0)
    x = (x >> drop | (uint)((x & ((1u << drop) - 1u)) != 0u)) << drop;
  return (float)x;
}
`,
	I64: `float odd_long(long x) {
  ulong size = x < 0 ? (ulong)0 - (ulong)x : (ulong)x;
  int drop = 40 - (int)clz(size | 1);
  if (drop > 0)
    size = (size >> drop | (ulong)((size & (((ulong)1 << drop) - 1)) != 0)) << drop;
  return x < 0 ? -(float)size : (float)size;
}
`,
	U64: `float odd_ulong(ulong x) {
  int drop = 40 - (int)clz(x | 1);
  if (drop > 0)
    x = (x >> drop | (ulong)((x & (((ulong)1 << drop) - 1)) != 0)) << drop;
  return (float)x;
}
`,
	F64: `float odd_double(double x) {
  float f = (float)x;
  if ((double)f == x || isnan(x) || isinf(f))
    return f;
  uint b = as_uint(f);
  if ((b & 1u) == 0)
    b += fabs((double)f) > fabs(x) ? 0xffffffffu : 1u; // to the neighbour, which is odd
  return as_float(b);
}
`,
}
