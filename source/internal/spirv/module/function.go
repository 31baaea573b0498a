package module

// Func is a function whose instructions are being written. Several may be open at a time.
type Func struct {
	b      *Builder
	ID     ID
	Params []ID
	head   []uint32
	vars   []uint32
	body   []uint32
	open   bool        // the current block has no end yet
	used   map[ID]bool // labels that a branch leads to
	file   ID          // of the last OpLine of the block
	line   int
}

// Function begins a function.
func (b *Builder) Function(result ID, params ...ID) *Func {
	f := &Func{b: b, ID: b.NewID(), used: map[ID]bool{}, open: true}
	instruction(&f.head, OpFunction, uint32(result), uint32(f.ID), 0, uint32(b.functionType(result, params)))
	for _, t := range params {
		id := b.NewID()
		f.Params = append(f.Params, id)
		instruction(&f.head, OpFunctionParameter, uint32(t), uint32(id))
	}
	instruction(&f.head, OpLabel, uint32(b.NewID()))
	return f
}

// Size returns the number of bytes of the function so far.
func (f *Func) Size() int { return 4 * (len(f.vars) + len(f.body)) }

// Variable declares a variable of the function and returns a pointer to it.
func (f *Func) Variable(typ ID) ID {
	id := f.b.NewID()
	instruction(&f.vars, OpVariable, uint32(f.b.Pointer(Function, typ)), uint32(id), uint32(Function))
	return id
}

// begin makes sure that instructions are in a block. After a jump it is one that nothing reaches.
func (f *Func) begin() {
	if !f.open {
		f.Label(f.b.NewID())
	}
}

// Emit writes an instruction with a result of a type.
func (f *Func) Emit(op Op, typ ID, operands ...ID) ID {
	f.begin()
	id := f.b.NewID()
	f.body = append(f.body, uint32(len(operands)+3)<<16|uint32(op), uint32(typ), uint32(id))
	for _, o := range operands {
		f.body = append(f.body, uint32(o))
	}
	return id
}

// Do writes an instruction without a result.
func (f *Func) Do(op Op, operands ...ID) {
	f.begin()
	f.body = append(f.body, uint32(len(operands)+1)<<16|uint32(op))
	for _, o := range operands {
		f.body = append(f.body, uint32(o))
	}
}

// Ext writes an instruction of GLSL.std.450.
func (f *Func) Ext(inst Inst, typ ID, operands ...ID) ID {
	return f.Emit(OpExtInst, typ, append([]ID{f.b.GLSL(), ID(inst)}, operands...)...)
}

// Load loads from a pointer. operands are those of memory accesses, if any.
func (f *Func) Load(typ, from ID, operands ...uint32) ID {
	return f.Emit(OpLoad, typ, append([]ID{from}, ids(operands)...)...)
}

// Store stores to a pointer.
func (f *Func) Store(to, value ID, operands ...uint32) {
	f.Do(OpStore, append([]ID{to, value}, ids(operands)...)...)
}

func ids(words []uint32) []ID {
	out := make([]ID, len(words))
	for i, w := range words {
		out[i] = ID(w)
	}
	return out
}

// Line says where the following instructions come from.
func (f *Func) Line(file string, line, col int) {
	if !f.open || line <= 0 {
		return
	}
	if id := f.b.file(file); id != f.file || line != f.line {
		f.file, f.line = id, line
		instruction(&f.body, OpLine, uint32(id), uint32(line), uint32(col))
	}
}

// Open reports whether the current block has no end yet.
func (f *Func) Open() bool { return f.open }

// Label begins a block. The one before it has to be ended.
func (f *Func) Label(id ID) {
	if f.open {
		f.Branch(id)
	}
	instruction(&f.body, OpLabel, uint32(id))
	f.open, f.file, f.line = true, 0, 0
}

// Merge begins the block where a construct ends. If nothing leads there, the block is unreachable.
func (f *Func) Merge(id ID) {
	f.Label(id)
	if !f.used[id] {
		f.end(OpUnreachable)
	}
}

// end ends the block.
func (f *Func) end(op Op, operands ...ID) {
	f.Do(op, operands...)
	f.open = false
}

// Branch ends the block with a jump; after another jump it does nothing.
func (f *Func) Branch(to ID) {
	if f.open {
		f.used[to] = true
		f.end(OpBranch, to)
	}
}

// BranchIf ends the block with a conditional jump that is part of a loop.
func (f *Func) BranchIf(cond, yes, no ID) {
	f.used[yes], f.used[no] = true, true
	f.end(OpBranchConditional, cond, yes, no)
}

// BranchTo ends the block with a conditional jump that begins a selection, which ends at merge.
func (f *Func) BranchTo(merge, cond, yes, no ID) {
	f.Do(OpSelectionMerge, merge, 0)
	f.BranchIf(cond, yes, no)
}

// Loop declares that the block is the header of a loop, and branches to its first block.
func (f *Func) Loop(merge, next, first ID, control uint32) {
	f.Do(OpLoopMerge, merge, next, ID(control))
	f.Branch(first)
}

// Switch ends the block with a jump to the target of a number, which begins a selection that ends at merge; values and
// targets are as many.
func (f *Func) Switch(merge, on, otherwise ID, values []uint32, targets []ID) {
	f.Do(OpSelectionMerge, merge, 0)
	operands := []ID{on, otherwise}
	f.used[otherwise] = true
	for i, v := range values {
		operands = append(operands, ID(v), targets[i])
		f.used[targets[i]] = true
	}
	f.end(OpSwitch, operands...)
}

// Return ends the block and the function; value is 0 for none.
func (f *Func) Return(value ID) {
	switch {
	case !f.open:
	case value == 0:
		f.end(OpReturn)
	default:
		f.end(OpReturnValue, value)
	}
}

// End adds the function to the module. Its last block has to be ended.
func (f *Func) End() {
	f.b.functions = append(f.b.functions, f.head...)
	f.b.functions = append(f.b.functions, f.vars...)
	f.b.functions = append(f.b.functions, f.body...)
	instruction(&f.b.functions, OpFunctionEnd)
	f.head, f.vars, f.body = nil, nil, nil
}
