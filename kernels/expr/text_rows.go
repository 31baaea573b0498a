package expr

// The OpenCL C text of maps with reductions.

import (
	"fmt"

	"github.com/concord-compute/concord/kernels"
)

// reduction is a reduction as text. What is known of its result is in a variable, or in an element of an array.
type reduction struct {
	*node
	number  int  // of the node
	operand int  // the node that is reduced
	from    Type // of that
}

// reductionsOf returns the reductions of a level, and the nodes that they reduce.
func (m *Map) reductionsOf(level int) (list []reduction, operands []int) {
	operands, reductions := m.operandsOf(level)
	for k, r := range reductions {
		list = append(list, reduction{&m.nodes[r], r, operands[k], m.nodes[operands[k]].typ})
	}
	return list, operands
}

// variable is a part of a result. Its name is that of the result after a prefix.
type variable struct {
	prefix string
	typ    Type
	none   uint64 // of no elements
}

// variables returns what a result consists of: a number, or a place and then the element that is there.
func (r *reduction) variables() []variable {
	if x := extremes[r.op]; x != 0 {
		return []variable{{"", r.typ, 0}, {"of_", r.from, identityOf(x, r.from)}}
	}
	return []variable{{"", r.typ, identityOf(r.op, r.typ)}}
}

// each returns a statement for each variable of a result: a format of its type, the prefix of its name, the number of
// the reduction, and the variable's value for no elements.
func (r *reduction) each(format string) string {
	text := ""
	for _, v := range r.variables() {
		text += fmt.Sprintf(format, valueType(v.typ), v.prefix, r.number, literal(v.typ, v.none))
	}
	return text
}

// combine returns the statement that combines the result in a variable with an element at a place in the row.
func (t *writer) combine(r *reduction, to, place, element string) string {
	if r.op.locates() {
		return fmt.Sprintf("  if (%s(%s, %s, of_%s, %[4]s)) {\n    %[4]s = %[3]s;\n    of_%[4]s = %[2]s;\n  }\n",
			firstName(r.op, r.from), element, place, to)
	}
	term := t.m.termOf(&node{op: combines[r.op], typ: r.typ}, r.typ, [3]string{to, element})
	return fmt.Sprintf("  %s = %s;\n", to, term)
}

// merge returns the statement that combines the result in a variable with another one.
func (t *writer) merge(r *reduction, to, from string) string {
	list := r.variables()
	return t.combine(r, to, from, list[len(list)-1].prefix+from)
}

// firstName is the name of a function that says whether element y, at place j, comes before element x at place i in a
// reduction to places, and firstText defines it.
func firstName(op Op, t Type) string { return fmt.Sprintf("%v_%s", op, valueType(t)) }

func firstText(op Op, t Type) string {
	sign, nan := ">", ""
	if op == ArgSmallest {
		sign = "<"
	}
	if t.IsFloat() {
		nan = " || (isnan(y) && (!isnan(x) || j < i))"
	}
	return fmt.Sprintf("bool %s(%[2]s y, long j, %[2]s x, long i) {\n  return y %s x || (y == x && j < i)%s;\n}\n",
		firstName(op, t), valueType(t), sign, nan)
}

// rows writes the kernel in which a group computes a row.
func (t *writer) rows() {
	m := t.m
	t.begin(fmt.Sprintf("kernel __attribute__((reqd_work_group_size(%d, 1, 1))) void ", kernels.Group), Kernel)
	for level := 1; level <= m.levels; level++ {
		reductions, _ := m.reductionsOf(level)
		for _, r := range reductions {
			t.WriteString(r.each(fmt.Sprintf("  local %%[1]s %%[2]spart%%[3]d[%d];\n", kernels.Group)))
		}
	}
	t.WriteString("  uint item = get_local_id(0);\n")
	t.positions(t.rank-1, "row", "get_group_id(0)")
	t.uniform(0)
	loop := fmt.Sprintf("  for (size_t j = item; j < n; j += %d) {\n  size_t i = row * n + j;\n", kernels.Group)
	for level := 1; level <= m.levels; level++ {
		reductions, operands := m.reductionsOf(level)
		for _, r := range reductions {
			t.WriteString(r.each("  %[1]s %[2]sv%[3]d = %[4]s;\n"))
		}
		t.WriteString(loop)
		t.inner(operands...)
		for _, r := range reductions {
			t.WriteString(t.combine(&r, fmt.Sprintf("v%d", r.number), "(long)j", m.name(r.operand)))
		}
		t.WriteString("  }\n")
		for _, r := range reductions {
			part := fmt.Sprintf("part%d", r.number)
			fmt.Fprintf(t, "%s  barrier(CLK_LOCAL_MEM_FENCE);\n  for (uint width = %d; width > 0; width /= 2) {\n"+
				"    if (item < width)\n    %s    barrier(CLK_LOCAL_MEM_FENCE);\n  }\n%s",
				r.each("  %[2]spart%[3]d[item] = %[2]sv%[3]d;\n"), kernels.Group/2,
				t.merge(&r, part+"[item]", part+"[item + width]"),
				r.each("  %[2]sv%[3]d = %[2]spart%[3]d[0];\n"))
		}
		t.uniform(level)
	}
	if len(m.outputsBy(true)) > 0 {
		t.WriteString("  if (item == 0) {\n")
		t.stores(m.oncePerRow, "  ")
		t.WriteString("  }\n")
	}
	t.elements(loop)
}

// elements writes the loop that stores the outputs with one value for each element, and the end of the kernel.
func (t *writer) elements(loop string) {
	var roots []int
	for _, j := range t.m.outputsBy(false) {
		roots = append(roots, t.m.outputs[j].node)
	}
	if len(roots) > 0 {
		t.WriteString(loop)
		t.inner(roots...)
		t.stores(func(k int) bool { return !t.m.oncePerRow(k) }, "")
		t.WriteString("  }\n")
	}
	t.WriteString("}\n")
}

// columns writes the kernel in which an item computes a row. It combines blocks of 128 elements, which keeps the errors
// of sums small.
func (t *writer) columns() {
	m := t.m
	t.begin("kernel void ", KernelColumns)
	t.positions(t.rank-1, "row", "get_global_id(0)")
	t.uniform(0)
	for level := 1; level <= m.levels; level++ {
		reductions, operands := m.reductionsOf(level)
		each := func(f func(r *reduction, number string) string) {
			for _, r := range reductions {
				t.WriteString(f(&r, fmt.Sprint(r.number)))
			}
		}
		each(func(r *reduction, _ string) string { return r.each("  %[1]s %[2]sv%[3]d = %[4]s;\n") })
		t.WriteString("  for (size_t j = 0; j < n;) {\n")
		each(func(r *reduction, _ string) string { return r.each("  %[1]s %[2]spart%[3]d = %[4]s;\n") })
		t.WriteString("  for (size_t end = n - j < 128 ? n : j + 128; j < end; j++) {\n  size_t i = row * n + j;\n")
		t.inner(operands...)
		each(func(r *reduction, i string) string { return t.combine(r, "part"+i, "(long)j", m.name(r.operand)) })
		t.WriteString("  }\n")
		each(func(r *reduction, i string) string { return t.merge(r, "v"+i, "part"+i) })
		t.WriteString("  }\n")
		t.uniform(level)
	}
	t.stores(m.oncePerRow, "")
	t.elements("  for (size_t j = 0; j < n; j++) {\n  size_t i = row * n + j;\n")
}
