package builtins

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/concord-compute/concord/source/internal/tree"
)

// builtinRows is the table: "names: class result(params), result(params); class ...".
// A name starting with @ is a member of the work-item base, ! also synchronizes
// the group. The symbols are explained at slotNames, the classes at newClasses.
const builtinRows = `
@get_work_dim: - u()
@get_global_size @get_global_id @get_local_size @get_local_id @get_num_groups @get_group_id @get_global_offset: - z(u)

acos acosh acospi asin asinh asinpi atan atanh atanpi cbrt ceil cos cosh cospi erfc erf exp exp2 exp10 expm1 fabs floor: fp G(G)
lgamma log log2 log10 log1p logb rint round rsqrt sin sinh sinpi sqrt tan tanh tanpi tgamma trunc: fp G(G)
atan2 atan2pi copysign fdim fmod hypot maxmag minmag nextafter pow powr remainder: fp G(G,G)
fmax fmin: fp G(G,G), G(G,s)
fma mad: fp G(G,G,G)
fract modf sincos: fp G(G,*G)
frexp lgamma_r: fp G(G,*i)
ilogb: fp i(G)
ldexp: fp G(G,i), G(G,n)
pown rootn: fp G(G,i)
remquo: fp G(G,G,*i)
nan: bits F(G)
half_cos half_exp half_exp2 half_exp10 half_log half_log2 half_log10 half_recip half_rsqrt half_sin half_sqrt half_tan: float G(G)
half_divide half_powr: float G(G,G)
native_cos native_exp native_exp2 native_exp10 native_log native_log2 native_log10 native_recip native_rsqrt native_sin native_sqrt native_tan: float G(G)
native_divide native_powr: float G(G,G)

abs: int U(G)
abs_diff: int U(G,G)
add_sat sub_sat hadd rhadd mul_hi rotate: int G(G,G)
clz popcount: int G(G)
mad_hi mad_sat: int G(G,G,G)
upsample: narrow W(G,U)
mul24: int32 G(G,G)
mad24: int32 G(G,G,G)

dot_4x8packed_uu_uint: - u(u,u)
dot_4x8packed_ss_int dot_4x8packed_us_int dot_4x8packed_su_int: - n(u,u)
dot_acc_sat_4x8packed_uu_uint: - u(u,u,u)
dot_acc_sat_4x8packed_ss_int dot_acc_sat_4x8packed_us_int dot_acc_sat_4x8packed_su_int: - n(u,u,n)
dot_acc_sat: uchar4 u(G,G,u)
dot_acc_sat: char4 n(G,G,n), n(G,U,n), n(U,G,n)

max min: any G(G,G), G(G,s)
clamp: any G(G,G,G), G(G,s,s)
degrees radians sign: fp G(G)
mix: fp G(G,G,G), G(G,G,s)
step: fp G(G,G), G(s,G)
smoothstep: fp G(G,G,G), G(s,s,G)

cross: fp34 G(G,G)
dot distance: fp1to4 s(G,G)
dot: uchar4 u(G,G)
dot: char4 n(G,G), n(G,U), n(U,G)
length: fp1to4 s(G)
normalize: fp1to4 G(G)
fast_distance: float1to4 s(G,G)
fast_length: float1to4 s(G)
fast_normalize: float1to4 G(G)

isequal isnotequal isgreater isgreaterequal isless islessequal islessgreater isordered isunordered: fp R(G,G)
isfinite isinf isnan isnormal signbit: fp R(G)
any all: signed n(G)
bitselect: any G(G,G,G)
select: any G(G,G,S)

vload2: scalar x2(z,*G)
vload3: scalar x3(z,*G)
vload4: scalar x4(z,*G)
vload8: scalar x8(z,*G)
vload16: scalar x16(z,*G)
vstore2: scalar v(x2,z,*G)
vstore3: scalar v(x3,z,*G)
vstore4: scalar v(x4,z,*G)
vstore8: scalar v(x8,z,*G)
vstore16: scalar v(x16,z,*G)
vload_half: - f1(z,*h)

!barrier: - v(u)
@mem_fence @read_mem_fence @write_mem_fence: - v(u)
@async_work_group_copy: all e(*G,*G,z,e)
@async_work_group_strided_copy: all e(*G,*G,z,z,e)
!wait_group_events: - v(n,*e)

@get_sub_group_size @get_max_sub_group_size @get_num_sub_groups @get_enqueued_num_sub_groups @get_sub_group_id @get_sub_group_local_id: - u()
@sub_group_barrier: - v(u)
@sub_group_all @sub_group_any: - n(n)
@sub_group_broadcast: subgroup G(G,u)
@sub_group_reduce_add @sub_group_reduce_min @sub_group_reduce_max: subgroup G(G)
@sub_group_scan_inclusive_add @sub_group_scan_inclusive_min @sub_group_scan_inclusive_max: subgroup G(G)
@sub_group_scan_exclusive_add @sub_group_scan_exclusive_min @sub_group_scan_exclusive_max: subgroup G(G)
@sub_group_shuffle @sub_group_shuffle_xor @sub_group_shuffle_up @sub_group_shuffle_down: scalar G(G,u)

@prefetch: all v(*G,z)

atomic_add atomic_sub atomic_min atomic_max atomic_and atomic_or atomic_xor: atomic32 s(*G,s)
atomic_xchg: atomicx s(*G,s)
atomic_inc atomic_dec: atomic32 s(*G)
atomic_cmpxchg: atomic32 s(*G,s,s)
atom_add atom_sub atom_min atom_max atom_and atom_or atom_xor: atomic s(*G,s)
atom_xchg: atomicx64 s(*G,s)
atom_inc atom_dec: atomic s(*G)
atom_cmpxchg: atomic s(*G,s,s)

shuffle: vector M(G,V)
shuffle2: vector M(G,G,V)
vec_step: all n(G)
@printf: - n(p)
`

// SubgroupExt is the extension that all functions of sub-groups need.
const SubgroupExt = "cl_khr_subgroups"

// newClasses returns the sets of types that G may stand for, by name.
func newClasses() map[string]*Class {
	ints := []tree.Kind{tree.Char, tree.UChar, tree.Short, tree.UShort, tree.Int, tree.UInt, tree.Long, tree.ULong}
	fps := []tree.Kind{tree.Half, tree.Float, tree.Double}
	all := []int{1, 2, 3, 4, 8, 16}
	cs := map[string]*Class{}
	add := func(name, text string, widths []int, kinds ...tree.Kind) {
		c := &Class{name: text}
		for _, k := range kinds {
			c.kinds[k] = true
		}
		for _, w := range widths {
			c.widths[w] = true
		}
		cs[name] = c
	}
	every := append(append([]tree.Kind{}, ints...), fps...)
	add("fp", "gentype", all, fps...)
	add("float", "floatn", all, tree.Float)
	add("fp34", "float3|float4", []int{3, 4}, fps...)
	add("fp1to4", "float1..4", []int{1, 2, 3, 4}, fps...)
	add("float1to4", "float1..4", []int{1, 2, 3, 4}, tree.Float)
	add("bits", "uintn", all, tree.UShort, tree.UInt, tree.ULong)
	add("int", "igentype", all, ints...)
	add("signed", "signed igentype", all, tree.Char, tree.Short, tree.Int, tree.Long)
	add("narrow", "igentype", all, ints[:6]...)
	add("int32", "intn|uintn", all, tree.Int, tree.UInt)
	add("any", "gentype", all, every...)
	add("char4", "char4", []int{4}, tree.Char)
	add("uchar4", "uchar4", []int{4}, tree.UChar)
	add("all", "gentype", all, append(every, tree.Bool)...)
	add("scalar", "scalar", []int{1}, every...)
	add("vector", "gentypen", []int{2, 4, 8, 16}, every...)
	add("atomic32", "int|uint", []int{1}, tree.Int, tree.UInt)
	add("atomicx", "int|uint|float", []int{1}, tree.Int, tree.UInt, tree.Float)
	add("atomic", "int|uint|long|ulong", []int{1}, tree.Int, tree.UInt, tree.Long, tree.ULong)
	add("atomicx64", "int|uint|float|long|ulong", []int{1}, tree.Int, tree.UInt, tree.Long, tree.ULong, tree.Float)
	add("subgroup", "int|uint|long|ulong|half|float|double", []int{1}, tree.Int, tree.UInt, tree.Long, tree.ULong,
		tree.Half, tree.Float, tree.Double)
	add("fdata", "float|double", all, tree.Float, tree.Double)
	return cs
}

// Table parses the rows once.
var Table = sync.OnceValue(func() map[string]*Func {
	cs, table := newClasses(), map[string]*Func{}
	for _, line := range strings.Split(strings.TrimSpace(builtinRows), "\n") {
		if line != "" {
			addRow(table, cs, line)
		}
	}
	addHalfRows(table, cs)
	table["printf"].Variadic = true
	return table
})

// addHalfRows adds vload_halfn, vloada_halfn and the rounding forms of
// vstore_half and vstorea_half, whose names combine a width and a rounding mode.
func addHalfRows(table map[string]*Func, cs map[string]*Class) {
	for _, n := range []int{1, 2, 3, 4, 8, 16} {
		w := ""
		if n > 1 {
			w = strconv.Itoa(n)
			addRow(table, cs, "vload_half"+w+" vloada_half"+w+": - f"+w+"(z,*h)")
		}
		for _, mode := range []string{"", "_rte", "_rtz", "_rtp", "_rtn"} {
			name := "vstore_half" + w + mode
			if n > 1 {
				name += " vstorea_half" + w + mode
			}
			// The data is float or double and has the width in the name.
			only := &Class{name: "float" + w + "|double" + w, kinds: cs["fdata"].kinds}
			only.widths[n] = true
			addRow(table, map[string]*Class{"fdata": only}, name+": fdata v(G,z,*h)")
		}
	}
	addRow(table, cs, "vloada_half: - f1(z,*h)")
	for _, mode := range []string{"", "_rte", "_rtz", "_rtp", "_rtn"} {
		table["vstorea_half"+mode] = &Func{Name: "vstorea_half" + mode, Forms: table["vstore_half"+mode].Forms}
	}
}

// IsByteDot reports whether a function is one of cl_khr_integer_dot_product, given its result.
func IsByteDot(name string, result Type) bool {
	return strings.HasPrefix(name, "dot_") || name == "dot" && isInt(result.Kind)
}

// addRow parses one row. It panics for a malformed row, which any test that uses the table finds.
func addRow(table map[string]*Func, cs map[string]*Class, line string) {
	names, rest, _ := strings.Cut(line, ": ")
	cname, sigs, _ := strings.Cut(rest, " ")
	var forms []Form
	for _, s := range strings.Split(sigs, ", ") {
		result, params, _ := strings.Cut(strings.TrimSuffix(s, ")"), "(")
		f := Form{Class: cs[cname], Result: parseSlot(result)}
		if params != "" {
			for _, p := range strings.Split(params, ",") {
				f.Params = append(f.Params, parseSlot(p))
			}
		}
		forms = append(forms, f)
	}
	for _, name := range strings.Fields(names) {
		b := &Func{Forms: forms}
		b.Name = strings.TrimLeft(name, "@!")
		if more := table[b.Name]; more != nil { // a row of its own for each class
			more.Forms = slices.Concat(more.Forms, forms)
			continue
		}
		b.Member, b.Barrier = name != b.Name, name[0] == '!'
		b.Atomic = strings.HasPrefix(b.Name, "atom")
		if strings.Contains(b.Name, "sub_group") {
			b.Ext = SubgroupExt
		}
		table[b.Name] = b
	}
}

// parseSlot reads "*G", "x4", "z" ...
func parseSlot(s string) Slot {
	var out Slot
	if s[0] == '*' {
		out.Ptr, s = true, s[1:]
	}
	out.Sym = s[0]
	if strings.IndexByte(slotNames, out.Sym) < 0 {
		panic("source: built-in table: " + s)
	}
	out.width = 1
	if len(s) > 1 {
		out.width, _ = strconv.Atoi(s[1:])
	}
	return out
}
