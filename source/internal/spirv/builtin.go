package spirv

// Built-in functions of work items and memory: ids, barriers, atomics, vload and vstore. The others are in
// builtins_*.go.

import (
	"strconv"
	"strings"

	"github.com/concord-compute/concord/source/internal/builtins"
	"github.com/concord-compute/concord/source/internal/spirv/module"
	"github.com/concord-compute/concord/source/internal/tree"
)

// writesBack reports whether a built-in only stores a result through its pointers, so that &x of a variable needs no
// address.
func writesBack(name string) bool {
	switch name {
	case "cc_fract", "cc_modf", "cc_sincos", "cc_frexp", "cc_lgamma_r", "cc_remquo":
		return true
	}
	return false
}

// builtin writes a call of a built-in function.
func (f *function) builtin(e *tree.Expr) value {
	if c, ok := builtins.ConversionOf(e.Text); ok {
		return f.conversion(c, f.expr(e.Args[0]))
	}
	name := strings.TrimPrefix(e.Text, "cc_")
	switch {
	case strings.HasPrefix(name, "get_") && !strings.Contains(name, "sub_group"):
		return f.workItem(e, name)
	case name == "barrier" || strings.HasSuffix(name, "mem_fence") || name == "wait_group_events":
		return f.fence(e, name)
	case strings.HasPrefix(name, "atom"):
		return f.atomic(e, name)
	case strings.HasPrefix(name, "vload"), strings.HasPrefix(name, "vstore"):
		return f.vectorAccess(e, name)
	case strings.HasPrefix(name, "async_work_group"):
		return f.asyncCopy(e)
	case name == "prefetch":
		f.args(e)
		return value{t: tree.VoidType}
	case name == "vec_step":
		n := e.Args[0].Type.Width()
		if n == 3 {
			n = 4
		}
		return scalar(e.Type, f.uint(n))
	case name == "printf":
		f.refuse(f.p.PosOf(e), "printf", "there is no printf in SPIR-V for Vulkan")
		return f.zero(e.Type)
	}
	if v, ok := f.simple(e, name); ok {
		return v
	}
	if v, ok := f.math(e, name); ok {
		return v
	}
	f.refuse(f.p.PosOf(e), "built-in", "'%s' cannot be expressed in SPIR-V", name)
	if e.Type.IsVoid() {
		return value{t: e.Type}
	}
	return f.zero(e.Type)
}

// args writes all arguments of a call.
func (f *function) args(e *tree.Expr) (list []value) {
	for _, a := range e.Args {
		list = append(list, f.expr(a))
	}
	return list
}

// lanewise applies an operation on scalars to the lanes of arguments, of which scalars go to all lanes.
func (f *function) lanewise(t *tree.Type, args []value, apply func(lane []id) id) value {
	out := value{t: t.Bare()}
	for i := range t.Width() {
		var lane []id
		for _, a := range args {
			lane = append(lane, a.ids[min(i, len(a.ids)-1)])
		}
		out.ids = append(out.ids, apply(lane))
	}
	return out
}

// workItem writes get_global_id and its like.
func (f *function) workItem(e *tree.Expr, name string) value {
	if name == "get_work_dim" {
		return scalar(e.Type, f.pushWord(pushDimensions))
	}
	return scalar(e.Type, f.idFunction(name, f.expr(e.Args[0])))
}

// fence writes barriers and fences. The flags are constants in practice; if not, all memory is meant.
func (f *function) fence(e *tree.Expr, name string) value {
	semantics := module.AcquireRelease
	flags := uint32(fenceLocal | fenceGlobal)
	args := f.args(e)
	if name != "wait_group_events" {
		if c, ok := f.b.Value(args[0].one()); ok {
			flags = uint32(c)
		}
	}
	if flags&fenceLocal != 0 || flags&fenceGlobal == 0 {
		semantics |= module.WorkgroupMemory
	}
	if flags&fenceGlobal != 0 {
		semantics |= module.UniformMemory
	}
	if f.b.VulkanModel() {
		semantics |= module.MakeAvailable | module.MakeVisible
	}
	scope := f.b.Uint(module.ScopeWorkgroup)
	if strings.HasSuffix(name, "mem_fence") {
		if flags&fenceGlobal != 0 {
			scope = f.b.Uint(module.ScopeDevice)
		}
		f.f.Do(module.OpMemoryBarrier, scope, f.b.Uint(semantics))
	} else {
		f.f.Do(module.OpControlBarrier, scope, scope, f.b.Uint(semantics))
	}
	return value{t: tree.VoidType}
}

// atomicOps are the instructions for signed and unsigned integers.
var atomicOps = map[string][2]module.Op{
	"add": {module.OpAtomicIAdd, module.OpAtomicIAdd}, "inc": {module.OpAtomicIAdd, module.OpAtomicIAdd},
	"sub": {module.OpAtomicISub, module.OpAtomicISub}, "dec": {module.OpAtomicISub, module.OpAtomicISub},
	"min": {module.OpAtomicSMin, module.OpAtomicUMin}, "max": {module.OpAtomicSMax, module.OpAtomicUMax},
	"and": {module.OpAtomicAnd, module.OpAtomicAnd}, "or": {module.OpAtomicOr, module.OpAtomicOr},
	"xor": {module.OpAtomicXor, module.OpAtomicXor}, "xchg": {module.OpAtomicExchange, module.OpAtomicExchange},
}

// atomic writes an atomic operation, whose order with others nothing says, as in OpenCL. Floats are exchanged as
// integers.
func (f *function) atomic(e *tree.Expr, name string) value {
	operation := name[strings.IndexByte(name, '_')+1:]
	p := f.pointee(e.Args[0])
	t := e.Args[0].Type.Elem
	k := t.Base
	var args []id
	for _, a := range e.Args[1:] {
		args = append(args, f.scalarOf(a, k))
	}
	if p.space == tree.Private || p.v != nil { // nobody else sees it
		return f.plainAtomic(operation, p, k, args)
	}
	held := tree.UInt
	if isWide(k) {
		held = tree.ULong
		f.b.Need(module.Int64Atomics)
		if p.space == tree.Local {
			f.refuse(f.p.PosOf(e), "atomics", "'%s': atomics of 64 bits on local memory cannot be expressed in SPIR-V", name)
			return f.zero(e.Type)
		}
	}
	typ := f.kindType(held)
	var at id
	scope := f.b.Uint(module.ScopeDevice)
	if p.space == tree.Local {
		at, scope = f.array(p.space, f.wordOf(p, 0)), f.b.Uint(module.ScopeWorkgroup)
	} else {
		at = f.pointerTo(p, typ)
	}
	relaxed := f.uint(0)
	for i := range args {
		args[i] = f.bitcast(args[i], k, held)
	}
	var old id
	switch operation {
	case "cmpxchg":
		old = f.f.Emit(module.OpAtomicCompareExch, typ, at, scope, relaxed, relaxed, args[1], args[0])
	case "inc", "dec":
		old = f.f.Emit(atomicOps[operation][0], typ, at, scope, relaxed, f.constant(held, 1))
	default:
		op := atomicOps[operation][1]
		if isSigned(k) {
			op = atomicOps[operation][0]
		}
		old = f.f.Emit(op, typ, at, scope, relaxed, args[0])
	}
	return scalar(t.Bare(), f.bitcast(old, held, k))
}

// plainAtomic is an atomic operation on private memory.
func (f *function) plainAtomic(operation string, p place, k tree.Kind, args []id) value {
	p = f.settled(p)
	old := f.load(p)
	was, now := old.one(), id(0)
	switch operation {
	case "add", "sub", "and", "or", "xor":
		op := map[string]string{"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^"}[operation]
		now = f.binary(op, k, was, args[0])
	case "inc":
		now = f.binary("+", k, was, f.constant(k, 1))
	case "dec":
		now = f.binary("-", k, was, f.constant(k, 1))
	case "min":
		now = f.choose(k, f.compare("<", k, args[0], was), args[0], was)
	case "max":
		now = f.choose(k, f.compare(">", k, args[0], was), args[0], was)
	case "xchg":
		now = args[0]
	default: // cmpxchg
		now = f.choose(k, f.compare("==", k, was, args[0]), args[1], was)
	}
	f.store(p, scalar(old.t, now))
	return old
}

// halfAccess is what the name of a function such as vstorea_half4_rte says.
func halfAccess(name string) (n, mode int, whole bool) {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "vload"), "vstore")
	name, whole = strings.CutPrefix(name, "a")
	name = strings.TrimPrefix(name, "_half")
	digits, rounding, found := strings.Cut(name, "_")
	mode = modeNearest
	if found {
		mode = modes["_"+rounding]
	}
	if n, _ = strconv.Atoi(digits); n == 0 {
		n = 1
	}
	return n, mode, whole
}

// vectorAccess writes vloadn, vstoren and their forms for half. They need only the alignment of a lane, but for the
// forms with an a, which step by the size of the vector.
func (f *function) vectorAccess(e *tree.Expr, name string) value {
	half := strings.Contains(name, "_half")
	n, mode, whole := halfAccess(name)
	args := f.args(e)
	pointer, offset := args[len(args)-1], args[len(args)-2]
	k := pointer.t.Elem.Base
	step := n
	if whole && n == 3 {
		step = 4
	}
	at := memory(tree.Scalar(k).In(pointer.t.Elem.Space).With(pointer.t.Elem.Q), pointer.one())
	size := step * tree.KindSize(k)
	i := f.mul(addressKind(at.space), f.convert(offset.one(), offset.t.Base, addressKind(at.space)), size)
	at.base = f.add(addressKind(at.space), at.base, i)
	lanes := tree.Vector(k, n).In(at.space).With(pointer.t.Elem.Q)
	at.t = lanes
	if strings.HasPrefix(name, "vload") {
		v := f.load(at)
		if !half {
			return v
		}
		return f.lanewise(e.Type, []value{v}, func(lane []id) id { return f.fromHalf(lane[0]) })
	}
	v := args[0]
	if half {
		from := v.t.Base
		v = f.lanewise(lanes, []value{v}, func(lane []id) id { return f.convertBy(lane[0], from, tree.Half, false, mode) })
	}
	f.store(at, v)
	return value{t: tree.VoidType}
}

// asyncCopy writes async_work_group_copy and its strided form: each item copies a part at once, and
// wait_group_events is a barrier.
func (f *function) asyncCopy(e *tree.Expr) value {
	args := f.args(e)
	to, from, n := memory(args[0].t.Elem, args[0].one()), memory(args[1].t.Elem, args[1].one()), args[2]
	count := f.convert(n.one(), n.t.Base, tree.UInt)
	var toStep, fromStep id
	if len(args) == 5 {
		stride := f.convert(args[3].one(), args[3].t.Base, tree.UInt)
		toStep, fromStep = stride, 0
		if to.space == tree.Local {
			toStep, fromStep = 0, stride
		}
	}
	first, items := f.idOf("get_local_id", 2), f.uint(1)
	for d := 1; d >= 0; d-- {
		first = f.op(module.OpIAdd, tree.UInt, f.op(module.OpIMul, tree.UInt, first, f.size[d]), f.idOf("get_local_id", d))
	}
	for d := range 3 {
		items = f.op(module.OpIMul, tree.UInt, items, f.size[d])
	}
	// the rounds of items that have something to copy
	left := f.op(module.OpISub, tree.UInt, f.op(module.OpIAdd, tree.UInt, count, items), first)
	left = f.op(module.OpISub, tree.UInt, left, f.uint(1))
	rounds := f.op(module.OpUDiv, tree.UInt, left, items)
	f.count(rounds, func(round id) {
		i := f.op(module.OpIAdd, tree.UInt, f.op(module.OpIMul, tree.UInt, round, items), first)
		at := func(p place, step id) place {
			index := i
			if step != 0 {
				index = f.op(module.OpIMul, tree.UInt, i, step)
			}
			return f.element(p, p.t, index, tree.UInt)
		}
		f.store(at(to, toStep), f.load(at(from, fromStep)))
	})
	return scalar(tree.EventType, f.uint(0))
}

// simple writes built-ins that are instructions, with exact results on every device.
func (f *function) simple(e *tree.Expr, name string) (value, bool) {
	k := tree.Void
	if len(e.Args) > 0 && e.Args[0].Type.IsArith() {
		k = e.Args[0].Type.Base
	}
	switch name {
	case "fabs", "floor", "ceil", "trunc", "rint":
		inst := map[string]module.Inst{"fabs": module.FAbs, "floor": module.Floor, "ceil": module.Ceil,
			"trunc": module.Trunc, "rint": module.RoundEven}[name]
		return f.lanewise(e.Type, f.args(e), func(x []id) id {
			if k == tree.Half {
				return f.toHalf(f.f.Ext(inst, f.b.Float(32), f.fromHalf(x[0])))
			}
			return f.f.Ext(inst, f.kindType(k), x[0])
		}), true
	case "fmin", "fmax":
		inst := map[string]module.Inst{"fmin": module.NMin, "fmax": module.NMax}[name]
		return f.lanewise(e.Type, f.args(e), func(x []id) id {
			if k == tree.Half {
				return f.toHalf(f.f.Ext(inst, f.b.Float(32), f.fromHalf(x[0]), f.fromHalf(x[1])))
			}
			return f.f.Ext(inst, f.kindType(k), x...)
		}), true
	case "min", "max", "clamp":
		return f.lanewise(e.Type, f.args(e), func(x []id) id {
			least := func(op string, a, b id) id { return f.choose(k, f.compare(op, k, b, a), b, a) }
			switch name {
			case "min":
				return least("<", x[0], x[1])
			case "max":
				return least(">", x[0], x[1])
			}
			return least("<", least(">", x[0], x[1]), x[2])
		}), true
	case "mad":
		if isFloating(k) {
			return f.lanewise(e.Type, f.args(e), func(x []id) id {
				return f.exact(module.OpFAdd, k, f.exact(module.OpFMul, k, x[0], x[1]), x[2])
			}), true
		}
	case "clz":
		return f.lanewise(e.Type, f.args(e), func(x []id) id { return f.leadingZeros(x[0], k) }), true
	case "select":
		c := e.Args[2].Type
		return f.lanewise(e.Type, f.args(e), func(x []id) id {
			if c.IsVector() {
				return f.choose(k, f.topBit(x[2], c.Base), x[1], x[0])
			}
			return f.choose(k, f.isTrue(x[2], c.Base), x[1], x[0])
		}), true
	case "any", "all":
		v := f.expr(e.Args[0])
		out := id(0)
		for _, x := range v.ids {
			c := f.topBit(x, k)
			switch {
			case out == 0:
				out = c
			case name == "any":
				out = f.test(module.OpLogicalOr, out, c)
			default:
				out = f.test(module.OpLogicalAnd, out, c)
			}
		}
		return scalar(e.Type, f.fromCondition(out, tree.Int, 1)), true
	}
	return value{}, false
}

// leadingZeros returns the number of zeros above the highest bit that is set.
func (f *function) leadingZeros(v id, k tree.Kind) id {
	word := f.b.Int(32)
	count := func(w id, from int) id { // FindUMsb of 0 is -1
		return f.op(module.OpISub, tree.UInt, f.uint(from), f.f.Ext(module.FindUMsb, word, w))
	}
	size := tree.KindSize(k)
	if size == 8 {
		low, high := f.halves(v)
		none := f.test(module.OpIEqual, high, f.uint(0))
		return f.convert(f.choose(tree.UInt, none, count(low, 63), count(high, 31)), tree.UInt, k)
	}
	if size < 4 {
		v = f.op(module.OpBitwiseAnd, tree.UInt, v, f.uint(1<<(8*size)-1))
	}
	return count(v, 8*size-1)
}
