package cluster

// What a member asks for, and what of it has to agree with the others.

import (
	"errors"
	"fmt"

	"github.com/concord-compute/concord/runtime"
)

// kind is what a member calls.
type kind uint8

const (
	allReduce kind = iota
	reduce
	broadcast
	allGather
	reduceScatter
	allToAll
	barrier
	pass // Send, Recv and SendRecv, of which only those that take part know
)

var kindNames = [...]string{"all-reduce", "reduce", "broadcast", "all-gather", "reduce-scatter", "all-to-all",
	"barrier", "send or receive"}

func (k kind) String() string { return kindNames[k] }

// combines reports whether elements are combined.
func (k kind) combines() bool { return k == allReduce || k == reduce || k == reduceScatter }

// request is one call of a member.
type request struct {
	kind     kind
	op       Op
	root     int
	to, from int // of pass
	dst, src *runtime.Buffer

	typ runtime.Type // of the elements
	n   int          // of a part: what check says
	by  Algorithm
}

// signature is what has to be equal at all members.
type signature struct {
	kind kind
	op   Op
	typ  runtime.Type
	n    int
	root int
	by   Algorithm
}

func (r *request) signature() signature { return signature{r.kind, r.op, r.typ, r.n, r.root, r.by} }

// String describes a call: "all-reduce sum of 10 f32, ring".
func (s signature) String() string {
	text := s.kind.String()
	if s.kind == barrier {
		return text
	}
	if s.kind.combines() {
		text += " " + s.op.String()
	}
	text += fmt.Sprintf(" of %d %v", s.n, s.typ)
	if s.kind == reduce || s.kind == broadcast {
		text += fmt.Sprintf(", root %d", s.root)
	}
	return text + ", " + s.by.String()
}

// entry is what a member says of itself when the members agree on a call.
type entry struct {
	call signature
	err  error           // why it cannot take part, or nil
	s    *runtime.Stream // of a member of this process
}

// judge returns why the members do not make a call, or nil if they do. They all come to the same answer.
func judge(all []entry) error {
	for rank, e := range all {
		if e.err != nil && !follows(all, rank) {
			named := blame(rank, e.err)
			return &MemberError{Rank: named.Rank, Err: named.Err, refused: true}
		}
	}
	for rank, e := range all {
		if e.call != all[0].call {
			return &MemberError{Rank: rank, refused: true, Err: fmt.Errorf("it calls %v, and member 0 %v: %w", e.call,
				all[0].call, runtime.ErrInvalidArgument)}
		}
	}
	return nil
}

// follows reports whether a member has failed because it waited for the work of another one that has.
func follows(all []entry, rank int) bool {
	for other, e := range all {
		if other != rank && e.err != nil && errors.Is(all[rank].err, e.err) && !errors.Is(e.err, all[rank].err) {
			return true
		}
	}
	return false
}

// check checks the arguments of a call, and sets what follows from them.
func (c *call) check(r *request) error {
	if r.op > Product {
		return fmt.Errorf("%v: %w", r.op, runtime.ErrInvalidArgument)
	}
	if r.root < 0 || r.root >= c.size {
		return fmt.Errorf("root %d of %d members: %w", r.root, c.size, runtime.ErrInvalidArgument)
	}
	if r.kind == barrier {
		return nil
	}
	if r.kind == pass {
		return c.checkPass(r)
	}
	dst, src := r.dst, r.src
	if r.kind == reduce && c.rank != r.root {
		dst = src
	}
	if r.kind == broadcast && c.rank != r.root {
		src = dst
	}
	for _, b := range []*runtime.Buffer{dst, src} {
		if err := c.checkBuffer(b); err != nil {
			return err
		}
	}
	if dst.Type() != src.Type() {
		return fmt.Errorf("%v and %v: %w", src.Type(), dst.Type(), runtime.ErrInvalidArgument)
	}
	r.dst, r.src, r.typ, r.n = dst, src, src.Type(), src.Len()
	whole, part := dst, dst // which may be the same memory
	var fits bool
	switch r.kind {
	case allGather:
		fits, part = dst.Len() == c.size*src.Len(), src
	case reduceScatter:
		r.n = dst.Len()
		fits, whole, part = src.Len() == c.size*dst.Len(), src, dst
	case allToAll:
		r.n = src.Len() / c.size
		fits = dst.Len() == src.Len() && src.Len()%c.size == 0
	default:
		fits = dst.Len() == src.Len()
	}
	if !fits {
		return fmt.Errorf("%v of %d elements to %d, %d members: %w", r.kind, src.Len(), dst.Len(), c.size,
			runtime.ErrDimension)
	}
	bytes := max(dst.Bytes(), src.Bytes())
	tree := r.kind != allGather && r.kind != reduceScatter && r.kind != allToAll
	r.by = c.m.group.options.choose(c.size, bytes, tree)
	if r.kind == allToAll {
		r.by = Direct
	}
	if whole != part {
		return c.checkPart(whole, part)
	}
	if !same(dst, src) && overlap(dst, src) {
		return fmt.Errorf("dst and src overlap: %w", runtime.ErrInvalidArgument)
	}
	return nil
}

// checkPart checks the memory of a whole and of a part, which may be this member's part of the whole.
func (c *call) checkPart(whole, part *runtime.Buffer) error {
	if !overlap(whole, part) {
		return nil
	}
	if mem, in := part.Memory(), whole.Memory(); mem.Offset != in.Offset+int64(c.rank)*mem.Size {
		return fmt.Errorf("dst and src overlap, and not at the part of the member: %w", runtime.ErrInvalidArgument)
	}
	return nil
}

func (c *call) checkPass(r *request) error {
	for _, peer := range []int{r.to, r.from} {
		if peer < -1 || peer >= c.size || (peer == c.rank) && r.to != r.from {
			return fmt.Errorf("member %d sends to %d and receives from %d, of %d: %w", c.rank, r.to, r.from, c.size,
				runtime.ErrInvalidArgument)
		}
	}
	if r.to < 0 && r.from < 0 {
		return fmt.Errorf("neither sends nor receives: %w", runtime.ErrInvalidArgument)
	}
	if r.to >= 0 {
		if err := c.checkBuffer(r.src); err != nil {
			return err
		}
	}
	if r.from >= 0 {
		if err := c.checkBuffer(r.dst); err != nil {
			return err
		}
	}
	if r.to >= 0 && r.from >= 0 && overlap(r.dst, r.src) {
		return fmt.Errorf("dst and src overlap: %w", runtime.ErrInvalidArgument)
	}
	return nil
}

func (c *call) checkBuffer(b *runtime.Buffer) error {
	if !b.LiesOn(c.m.dev) {
		return fmt.Errorf("a buffer is nil, closed, or not one of %s: %w", c.m.dev, runtime.ErrInvalidArgument)
	}
	return nil
}

// same reports whether two buffers are the same memory of one device.
func same(a, b *runtime.Buffer) bool { return a.Memory() == b.Memory() }

// overlap reports whether two buffers of one device share memory.
func overlap(a, b *runtime.Buffer) bool {
	x, y := a.Memory(), b.Memory()
	return x.Handle == y.Handle && x.Kind == y.Kind && x.Offset < y.Offset+y.Size && y.Offset < x.Offset+x.Size
}

// overlapOn is overlap for buffers of any devices.
func overlapOn(dev *runtime.Device, a, b *runtime.Buffer) bool {
	return a.LiesOn(dev) && b.LiesOn(dev) && overlap(a, b)
}
