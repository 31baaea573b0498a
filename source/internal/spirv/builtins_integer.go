package spirv

// Built-in functions of integers, shuffles, dot products of bytes and functions of sub-groups.

import (
	"strings"

	"github.com/concord-compute/concord/source/internal/spirv/module"
	"github.com/concord-compute/concord/source/internal/tree"
)

// integer writes the functions of integers, and those that handle lanes as bits.
func (f *function) integer(e *tree.Expr, name string) (value, bool) {
	k := e.Args[0].Type.Base
	var apply func(x []id) id
	switch name {
	case "abs":
		apply = func(x []id) id { return f.magnitude(x[0], k) }
	case "abs_diff":
		apply = func(x []id) id {
			a, b := f.op(module.OpISub, k, x[0], x[1]), f.op(module.OpISub, k, x[1], x[0])
			return f.choose(k, f.compare(">", k, x[0], x[1]), a, b)
		}
	case "add_sat", "sub_sat", "mad_sat":
		apply = func(x []id) id { return f.saturating(name, k, x) }
	case "hadd":
		apply = func(x []id) id {
			return f.op(module.OpIAdd, k, f.op(module.OpBitwiseAnd, k, x[0], x[1]), f.halfXor(k, x))
		}
	case "rhadd":
		apply = func(x []id) id {
			return f.op(module.OpISub, k, f.op(module.OpBitwiseOr, k, x[0], x[1]), f.halfXor(k, x))
		}
	case "rotate":
		apply = func(x []id) id { return f.rotate(k, x[0], x[1]) }
	case "popcount":
		apply = func(x []id) id { return f.population(k, x[0]) }
	case "mul_hi":
		apply = func(x []id) id { return f.highProduct(k, x[0], x[1]) }
	case "mad_hi":
		apply = func(x []id) id { return f.binary("+", k, f.highProduct(k, x[0], x[1]), x[2]) }
	case "mul24":
		apply = func(x []id) id { return f.binary("*", k, x[0], x[1]) }
	case "mad24":
		apply = func(x []id) id { return f.binary("+", k, f.binary("*", k, x[0], x[1]), x[2]) }
	case "upsample":
		to := e.Type.Base
		apply = func(x []id) id {
			high := f.shift(module.OpShiftLeftLogical, to, f.convert(x[0], k, to), 8*tree.KindSize(k))
			low := f.convert(x[1], e.Args[1].Type.Base, to)
			return f.op(module.OpBitwiseOr, to, f.narrow32(high, to), low)
		}
	case "bitselect":
		u := bitsKind(k)
		apply = func(x []id) id {
			a, b, c := f.bitsOf(x[0], k), f.bitsOf(x[1], k), f.bitsOf(x[2], k)
			a = f.op(module.OpBitwiseAnd, u, a, f.f.Emit(module.OpNot, f.kindType(u), c))
			b = f.op(module.OpBitwiseAnd, u, b, c)
			return f.ofBits(f.op(module.OpBitwiseOr, u, a, b), k)
		}
	case "shuffle", "shuffle2":
		return f.shuffle(e), true
	default:
		return value{}, false
	}
	return f.lanewise(e.Type, f.args(e), apply), true
}

// narrow32 extends the low bits of a value of kind k, if it has fewer than 32.
func (f *function) narrow32(v id, k tree.Kind) id {
	if isWide(k) {
		return v
	}
	return f.narrow(v, k)
}

// magnitude returns the absolute value, which is unsigned.
func (f *function) magnitude(v id, k tree.Kind) id {
	if !isSigned(k) {
		return v
	}
	return f.choose(k, f.compare("<", k, v, f.constant(k, 0)), f.f.Emit(module.OpSNegate, f.kindType(k), v), v)
}

// halfXor returns (x ^ y) >> 1.
func (f *function) halfXor(k tree.Kind, x []id) id {
	op := module.OpShiftRightLogical
	if isSigned(k) {
		op = module.OpShiftRightArithmetic
	}
	return f.shift(op, k, f.op(module.OpBitwiseXor, k, x[0], x[1]), 1)
}

// saturating writes add_sat, sub_sat and mad_sat: in more bits, in which nothing overflows; 64 bits are the library's.
func (f *function) saturating(name string, k tree.Kind, x []id) id {
	if isWide(k) {
		suffix := "_ul"
		if isSigned(k) {
			suffix = "_l"
		}
		return f.callLibrary("cc_"+name+suffix, k, x...)
	}
	wide := tree.Long
	if name == "mad_sat" && !isSigned(k) {
		wide = tree.ULong
	}
	y := make([]id, len(x))
	for i, v := range x {
		y[i] = f.convert(v, k, wide)
	}
	var r id
	switch name {
	case "add_sat":
		r = f.op(module.OpIAdd, wide, y[0], y[1])
	case "sub_sat":
		r = f.op(module.OpISub, wide, y[0], y[1])
	default:
		r = f.op(module.OpIAdd, wide, f.op(module.OpIMul, wide, y[0], y[1]), y[2])
	}
	return f.convert(f.saturate(r, wide, k), wide, k)
}

func (f *function) rotate(k tree.Kind, x, n id) id {
	u := bitsKind(k)
	width := 8 * tree.KindSize(k)
	mask := f.constant(u, uint64(width-1))
	left := f.op(module.OpBitwiseAnd, u, n, mask)
	right := f.op(module.OpBitwiseAnd, u, f.op(module.OpISub, u, f.constant(u, uint64(width)), left), mask)
	if width < 32 {
		x = f.op(module.OpBitwiseAnd, u, x, f.constant(u, 1<<width-1))
	}
	up, down := f.op(module.OpShiftLeftLogical, u, x, left), f.op(module.OpShiftRightLogical, u, x, right)
	return f.narrow32(f.op(module.OpBitwiseOr, u, up, down), k)
}

func (f *function) population(k tree.Kind, v id) id {
	count := func(v id) id { return f.f.Emit(module.OpBitCount, f.b.Int(32), v) }
	if isWide(k) {
		low, high := f.halves(v)
		return f.convert(f.op(module.OpIAdd, tree.UInt, count(low), count(high)), tree.UInt, k)
	}
	if width := 8 * tree.KindSize(k); width < 32 {
		v = f.op(module.OpBitwiseAnd, tree.UInt, v, f.constant(tree.UInt, 1<<width-1))
	}
	return count(v)
}

// highProduct returns the high half of a product.
func (f *function) highProduct(k tree.Kind, x, y id) id {
	wide, op, suffix := tree.ULong, module.OpShiftRightLogical, "_ul"
	if isSigned(k) {
		wide, op, suffix = tree.Long, module.OpShiftRightArithmetic, "_l"
	}
	if isWide(k) {
		return f.callLibrary("cc_mul_hi"+suffix, k, x, y)
	}
	p := f.op(module.OpIMul, wide, f.convert(x, k, wide), f.convert(y, k, wide))
	return f.convert(f.shift(op, wide, p, 8*tree.KindSize(k)), wide, k)
}

// shuffle writes shuffle and shuffle2.
func (f *function) shuffle(e *tree.Expr) value {
	args := f.args(e)
	mask := args[len(args)-1]
	var lanes []id
	for _, a := range args[:len(args)-1] {
		lanes = append(lanes, a.ids...)
	}
	out := value{t: e.Type.Bare()}
	for _, m := range mask.ids {
		i := f.convert(m, mask.t.Base, tree.UInt)
		if c, ok := f.b.Value(i); ok {
			out.ids = append(out.ids, lanes[c&uint64(len(lanes)-1)])
			continue
		}
		from := lanes
		for bit := 0; len(from) > 1; bit++ { // each bit of the index halves the choice
			set := f.test(module.OpINotEqual, f.op(module.OpBitwiseAnd, tree.UInt, i, f.uint(1<<bit)), f.uint(0))
			next := make([]id, len(from)/2)
			for j := range next {
				next[j] = f.choose(e.Type.Base, set, from[2*j+1], from[2*j])
			}
			from = next
		}
		out.ids = append(out.ids, from[0])
	}
	return out
}

// byteDot writes the dot products of four bytes.
func (f *function) byteDot(e *tree.Expr, name string) value {
	args := f.args(e)
	k := e.Type.Base
	var bytes [2][]id
	for i := range bytes {
		bytes[i] = args[i].ids
		if !args[i].t.IsVector() { // packed: the name says what the bytes are
			_, kinds, _ := strings.Cut(name, "packed_")
			kind := tree.UChar
			if kinds[i] == 's' {
				kind = tree.Char
			}
			bytes[i] = nil
			for j := range 4 {
				bytes[i] = append(bytes[i], f.narrow(f.shift(module.OpShiftRightLogical, tree.UInt, args[i].one(), 8*j), kind))
			}
		}
	}
	var sum id
	for j, x := range bytes[0] {
		p := f.op(module.OpIMul, k, x, bytes[1][j])
		if sum == 0 {
			sum = p
		} else {
			sum = f.op(module.OpIAdd, k, sum, p)
		}
	}
	if strings.HasPrefix(name, "dot_acc_sat") {
		sum = f.saturating("add_sat", k, []id{sum, args[2].one()})
	}
	return scalar(e.Type, sum)
}

// groupOps are the instructions for signed and unsigned integers and floating numbers.
var groupOps = map[string]compareOps{
	"add": {module.OpGroupNonUniformIAdd, module.OpGroupNonUniformIAdd, module.OpGroupNonUniformFAdd},
	"min": {module.OpGroupNonUniformSMin, module.OpGroupNonUniformUMin, module.OpGroupNonUniformFMin},
	"max": {module.OpGroupNonUniformSMax, module.OpGroupNonUniformUMax, module.OpGroupNonUniformFMax},
}

// subGroup writes the functions of sub-groups.
func (f *function) subGroup(e *tree.Expr, name string) value {
	f.b.Need(module.GroupNonUniform)
	switch name {
	case "get_max_sub_group_size":
		return scalar(e.Type, f.input(module.SubgroupSize, -1))
	case "get_num_sub_groups", "get_enqueued_num_sub_groups":
		// NumSubgroups forgets the last one on lavapipe if that is smaller.
		items := f.op(module.OpIMul, tree.UInt, f.op(module.OpIMul, tree.UInt, f.size[0], f.size[1]), f.size[2])
		width := f.input(module.SubgroupSize, -1)
		up := f.op(module.OpIAdd, tree.UInt, items, f.op(module.OpISub, tree.UInt, width, f.uint(1)))
		return scalar(e.Type, f.op(module.OpUDiv, tree.UInt, up, width))
	case "get_sub_group_id":
		return scalar(e.Type, f.input(module.SubgroupID, -1))
	case "get_sub_group_local_id":
		return scalar(e.Type, f.input(module.SubgroupLocalInvocationID, -1))
	case "get_sub_group_size": // how devices cut groups of several dimensions, nothing says: the items are counted
		f.b.Need(module.GroupNonUniformArithmetic)
		return scalar(e.Type, f.f.Emit(module.OpGroupNonUniformIAdd, f.b.Int(32), f.b.Uint(module.ScopeSubgroup),
			id(module.Reduce), f.uint(1)))
	}
	scope := f.b.Uint(module.ScopeSubgroup)
	if name == "sub_group_barrier" {
		f.args(e)
		semantics := module.AcquireRelease | module.WorkgroupMemory | module.UniformMemory
		if f.b.VulkanModel() {
			semantics |= module.MakeAvailable | module.MakeVisible
		}
		f.f.Do(module.OpControlBarrier, scope, scope, f.b.Uint(semantics))
		return value{t: tree.VoidType}
	}
	args := f.args(e)
	x := args[0].one()
	if name == "sub_group_all" || name == "sub_group_any" {
		f.b.Need(module.GroupNonUniformVote)
		op := module.OpGroupNonUniformAll
		if name == "sub_group_any" {
			op = module.OpGroupNonUniformAny
		}
		c := f.f.Emit(op, f.b.Bool(), scope, f.isTrue(x, args[0].t.Base))
		return scalar(e.Type, f.fromCondition(c, tree.Int, 1))
	}
	k := e.Type.Base
	if lane, ok := f.otherItem(name, args); ok {
		f.b.Need(module.GroupNonUniformShuffle)
		return scalar(e.Type, f.f.Emit(module.OpGroupNonUniformShuffle, f.kindType(k), scope, x, lane))
	}
	f.b.Need(module.GroupNonUniformArithmetic)
	operation := name[strings.LastIndexByte(name, '_')+1:]
	ops := groupOps[operation]
	op := ops.unsigned
	switch {
	case isReal(k):
		op = ops.float
	case isSigned(k):
		op = ops.signed
	}
	how := module.Reduce
	switch {
	case strings.Contains(name, "inclusive"):
		how = module.InclusiveScan
	case strings.Contains(name, "exclusive"):
		how = module.ExclusiveScan
	}
	held := k
	if isReal(k) {
		held = realKind(k)
	}
	return scalar(e.Type, f.rounded(f.f.Emit(op, f.kindType(held), scope, id(how), f.real(x, k)), k))
}

// otherItem returns the item of the sub-group from which a function gets a value.
func (f *function) otherItem(name string, args []value) (lane id, ok bool) {
	here := func() id { return f.input(module.SubgroupLocalInvocationID, -1) }
	switch name {
	case "sub_group_broadcast", "sub_group_shuffle":
		return args[1].one(), true
	case "sub_group_shuffle_xor":
		return f.op(module.OpBitwiseXor, tree.UInt, here(), args[1].one()), true
	case "sub_group_shuffle_up":
		return f.op(module.OpISub, tree.UInt, here(), args[1].one()), true
	case "sub_group_shuffle_down":
		return f.op(module.OpIAdd, tree.UInt, here(), args[1].one()), true
	}
	return 0, false
}
