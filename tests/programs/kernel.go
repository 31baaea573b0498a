package programs

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// maxGroup is the largest number of items of a group in a generated program.
const maxGroup = 64

// kernel is the state of a kernel besides its statements.
type kernel struct {
	g      *gen
	name   string
	groups bool // it uses its group, so that launches set the group size
	coop   bool // it has barriers
	ins    []kind
	outs   []*output
	values []value // arguments by value
	locals []kind  // local memory that the launch passes
	cells  int     // number of cells of the buffer for atomics
	wide   int     // number of 64-bit cells
	tops   []*stmt // declarations of local memory
	rec    *record // a buffer of these is an input
}

// output is a buffer of results, with a number of elements per item.
type output struct {
	name  string
	k     kind
	slots int
	ulps  []int
}

type value struct {
	name string
	t    typ
	rec  *record
}

// input names the buffer of a kind.
func (k *kernel) input(of kind) string {
	for _, have := range k.ins {
		if have == of {
			return "in_" + of.String()
		}
	}
	k.ins = append(k.ins, of)
	return "in_" + of.String()
}

// output reserves n elements, and returns the text that designates them.
func (k *kernel) output(of kind, n, ulps int) string {
	name := "out_" + of.String()
	if ulps > 0 {
		name = "near_" + of.String()
	}
	var o *output
	for _, have := range k.outs {
		if have.name == name {
			o = have
		}
	}
	if o == nil {
		o = &output{name: name, k: of}
		k.outs = append(k.outs, o)
	}
	o.slots = (o.slots + n - 1) / n * n
	at := o.slots
	o.slots += n
	for len(o.ulps) < o.slots {
		o.ulps = append(o.ulps, ulps)
	}
	return fmt.Sprintf("(%s + o * %s_%s + %d)", name, k.name, name, at)
}

// makeKernel makes a kernel and its launches.
func (g *gen) makeKernel(number int) {
	k := &kernel{g: g, name: fmt.Sprint("k", number), coop: g.chance(2)}
	k.groups = k.coop || g.chance(2)
	g.kern, g.ids, g.diverged = k, true, !k.coop
	vars, recs, helpers := g.vars, g.recs, g.helpers
	g.vars, g.recs = g.vars[:len(g.vars):len(g.vars)], nil
	g.arguments(k)
	body := &block{}
	body.add(&stmt{form: "const size_t o = get_global_id(0) + get_global_size(0) * (get_global_id(1) + " +
		"get_global_size(1) * get_global_id(2));", fixed: true})
	if k.groups {
		body.add(&stmt{form: "const uint l = (uint)(get_local_id(0) + get_local_size(0) * (get_local_id(1) + " +
			"get_local_size(1) * get_local_id(2)));\n" +
			"const uint ls = (uint)(get_local_size(0) * get_local_size(1) * get_local_size(2));", fixed: true})
		g.vars = append(g.vars, variable{name: "l", t: typ{kUInt, 1}}, variable{name: "ls", t: typ{kUInt, 1}, alike: true})
	} else {
		body.add(&stmt{form: "const uint l = (uint)o;", fixed: true})
		g.vars = append(g.vars, variable{name: "l", t: typ{kUInt, 1}})
	}
	if k.rec != nil {
		g.members("recs[l & 7]", k.rec, false, false)
	}
	for range 2 + g.IntN(4) {
		g.declareVariable(body)
	}
	for range 3 + g.IntN(6) {
		g.statement(body, 3)
	}
	g.stores(body)
	k.finish(body)
	g.vars, g.recs, g.helpers, g.kern = vars, recs, helpers, nil
}

// arguments chooses the arguments that are passed by value.
func (g *gen) arguments(k *kernel) {
	for i := range g.IntN(4) {
		v := value{name: fmt.Sprint("v", i), t: g.anyOf()}
		k.values = append(k.values, v)
		g.vars = append(g.vars, variable{name: v.name, t: v.t, rw: true, alike: k.coop})
	}
	if len(g.records) > 0 && g.chance(4) {
		// It is only read: in PoCL (3.1) the items of a group share a record that is passed by
		// value, so that each item sees writes of the others. All values together may have 1,024
		// bytes (CL_DEVICE_MAX_PARAMETER_SIZE).
		v := value{name: "vr", rec: pick(g, g.records)}
		if size, _, _ := v.rec.layout(); size <= 256 {
			k.values = append(k.values, v)
			g.recs = append(g.recs, recordVar{v.name, v.rec})
			g.members(v.name, v.rec, false, true)
		}
	}
	if len(g.records) > 0 && g.chance(4) {
		k.rec = pick(g, g.records)
	}
}

// finish writes the head of the kernel, and its launches.
func (k *kernel) finish(body *block) {
	g := k.g
	body.list = append(k.tops, body.list...)
	var params, defines []string
	for _, of := range k.ins {
		params = append(params, fmt.Sprintf("%s const %s *%sin_%s", pick(g, []string{"global", "__global"}), of,
			pick(g, []string{"", "restrict "}), of))
	}
	if k.rec != nil {
		params = append(params, fmt.Sprintf("global const %s *recs", k.rec.tag()))
	}
	for _, o := range k.outs {
		o.slots = (o.slots + 15) / 16 * 16
		defines = append(defines, fmt.Sprintf("#define %s_%s %d\n", k.name, o.name, o.slots))
		params = append(params, fmt.Sprintf("global %s *%s", o.k, o.name))
	}
	if k.cells > 0 {
		params = append(params, "global volatile uint *cells")
	}
	if k.wide > 0 {
		params = append(params, "global volatile ulong *wide")
	}
	for _, v := range k.values {
		t := v.t.String()
		if v.rec != nil {
			t = v.rec.tag()
		}
		params = append(params, t+" "+v.name)
	}
	for i, of := range k.locals {
		params = append(params, fmt.Sprintf("local %s *given%d", of, i))
	}
	head := fmt.Sprintf("%s%s void %s(%s)", strings.Join(defines, ""), pick(g, []string{"kernel", "__kernel"}), k.name,
		strings.Join(params, ", "))
	g.parts = append(g.parts, &part{name: k.name, head: head, body: body, kernel: true})
	// PoCL compiles a kernel for each group size, which takes longer than everything else.
	s := pick(g, shapes)
	g.p.Launches = append(g.p.Launches, k.launch(s.group, s.groups))
	for range 2 {
		groups := pick(g, shapes[:4]).groups
		groups[0] = min(groups[0], most/(s.group[0]*s.group[1]*s.group[2]))
		g.p.Launches = append(g.p.Launches, k.launch(s.group, groups))
	}
	if g.chance(8) {
		s = pick(g, shapes)
		g.p.Launches = append(g.p.Launches, k.launch(s.group, s.groups))
	}
}

// most is the largest number of items of a launch, low enough for an interpreter.
const most = 256

// shapes are group sizes with numbers of groups.
var shapes = []struct{ group, groups [3]int }{
	{[3]int{16, 1, 1}, [3]int{5, 1, 1}}, {[3]int{1, 1, 1}, [3]int{37, 1, 1}}, {[3]int{64, 1, 1}, [3]int{2, 1, 1}},
	{[3]int{7, 1, 1}, [3]int{9, 1, 1}},
	{[3]int{8, 4, 1}, [3]int{2, 3, 1}}, {[3]int{5, 3, 1}, [3]int{3, 3, 1}}, {[3]int{1, 16, 1}, [3]int{7, 1, 1}},
	{[3]int{4, 4, 2}, [3]int{2, 1, 2}},
	{[3]int{3, 2, 5}, [3]int{2, 2, 1}}, {[3]int{33, 1, 1}, [3]int{3, 1, 1}}, {[3]int{1, 1, 1}, [3]int{1, 1, 1}},
	{[3]int{2, 1, 13}, [3]int{1, 4, 1}},
}

func (k *kernel) launch(group, groups [3]int) Launch {
	g := k.g
	l := Launch{Kernel: k.name, Group: group}
	items := 1
	for i := range l.Items {
		l.Items[i] = group[i] * groups[i]
		items *= l.Items[i]
	}
	if !k.groups && g.chance(2) {
		l.Group = [3]int{}
	}
	for _, of := range k.ins {
		l.Args = append(l.Args, Arg{Name: "in_" + of.String(), Buffer: true, Data: g.bytes(of, inputs), kind: of})
	}
	if k.rec != nil {
		l.Args = append(l.Args, Arg{Name: "recs", Buffer: true, Data: g.recordBytes(k.rec, 8), kind: kUChar})
	}
	for _, o := range k.outs {
		data := make([]byte, items*o.slots*o.k.size())
		for i := range data {
			data[i] = byte(0x11 + i%7)
		}
		a := Arg{Name: o.name, Buffer: true, Data: data, Out: true, kind: o.k}
		if strings.HasPrefix(o.name, "near_") {
			a.ulps = make([]int, o.slots)
			copy(a.ulps, o.ulps)
		}
		l.Args = append(l.Args, a)
	}
	if k.cells > 0 {
		l.Args = append(l.Args, Arg{Name: "cells", Buffer: true, Data: g.bytes(kUInt, k.cells), Out: true, kind: kUInt})
	}
	if k.wide > 0 {
		l.Args = append(l.Args, Arg{Name: "wide", Buffer: true, Data: g.bytes(kULong, k.wide), Out: true, kind: kULong})
	}
	for _, v := range k.values {
		a := Arg{Name: v.name}
		if v.rec != nil {
			a.Data = g.recordBytes(v.rec, 1)
		} else {
			a.Data = make([]byte, v.t.size())
			copy(a.Data, g.bytes(v.t.k, v.t.n))
		}
		l.Args = append(l.Args, a)
	}
	for i, of := range k.locals {
		l.Args = append(l.Args, Arg{Name: fmt.Sprint("given", i), Local: maxGroup * of.size()})
	}
	return l
}

// bytes makes values, some of them special ones.
func (g *gen) bytes(of kind, n int) []byte {
	var data []byte
	for range n {
		var bits uint64
		switch {
		case of == kFloat && g.chance(4):
			bits = uint64(math.Float32bits(pick(g, special32)))
		case of == kFloat && g.chance(3): // what rounds to either zero
			bits = uint64(math.Float32bits(float32(g.IntN(33)-16) / 8))
		case of == kFloat:
			bits = uint64(math.Float32bits(float32(g.IntN(2001)-1000) / 8))
		case of == kDouble && g.chance(4):
			bits = math.Float64bits(pick(g, special64))
		case of == kDouble && g.chance(3):
			bits = math.Float64bits(float64(g.IntN(33)-16) / 8)
		case of == kDouble:
			bits = math.Float64bits(float64(g.IntN(2001)-1000) / 10)
		case g.chance(4):
			bits = pick(g, []uint64{0, 1, math.MaxUint64, 1 << 63, 0x7fffffff, 0x80000000, 0x80, 0x7f, 0x8000, 0x7fff,
				math.MaxInt64, 2, 31, 32, 63, 64})
		case g.chance(2):
			bits = uint64(int64(g.IntN(41) - 20))
		default:
			bits = g.Uint64()
		}
		data = binary.LittleEndian.AppendUint64(data, bits)[:len(data)+of.size()]
	}
	return data
}

// recordBytes makes values of a record.
func (g *gen) recordBytes(r *record, n int) []byte {
	size, _, places := r.layout()
	data := make([]byte, n*size)
	for i := range n {
		for _, p := range places {
			copy(data[i*size+p.offset:], g.bytes(p.t.k, p.t.n))
		}
	}
	return data
}
