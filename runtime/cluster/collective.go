package cluster

// The algorithms: what every member does in a collective, with its rank. All steps of one member are in one order.

import "github.com/concord-compute/concord/runtime"

// broadcastPieces is into how many parts a chain of members divides what it passes on.
const broadcastPieces = 16

// shares divides n elements among members: the first ones have one more where there is a remainder.
func shares(n, members int) Placement {
	p := make(Placement, members)
	each, more := n/members, n%members
	for i := range p {
		p[i] = Part{First: i*each + min(i, more), Count: each}
		if i < more {
			p[i].Count++
		}
	}
	return p
}

// after returns the rank that comes a number of places behind a rank, or before it.
func (c *call) after(rank, by int) int { return ((rank+by)%c.size + c.size) % c.size }

// work does what a request asks for, once the members have agreed.
func (c *call) work(r *request) {
	if r.by == Library {
		c.byLibrary(r)
		return
	}
	switch r.kind {
	case allReduce:
		c.allReduce(r)
	case reduce:
		c.reduce(r)
	case broadcast:
		if c.rank == r.root {
			c.copy(r.dst, r.src)
		}
		c.broadcast(r.by, r.root, r.dst)
	case allGather:
		parts := shares(r.dst.Len(), c.size)
		c.copy(c.part(r.dst, parts[c.rank]), r.src)
		c.gather(r.by, r.dst, parts)
	case reduceScatter:
		c.scatter(r, r.dst, nil)
	case allToAll:
		c.allToAll(r)
	}
}

// allReduce combines each part at one member, which passes the result on.
func (c *call) allReduce(r *request) {
	if r.by == Tree {
		c.treeReduce(r, 0, r.dst)
		c.settle()
		c.broadcast(Tree, 0, r.dst)
		return
	}
	parts := shares(r.n, c.size)
	c.scatter(r, c.part(r.dst, parts[c.rank]), r.dst)
	c.settle()
	c.gather(r.by, r.dst, parts)
}

// reduce combines elements at the root.
func (c *call) reduce(r *request) {
	var dst *runtime.Buffer
	if c.rank == r.root {
		dst = r.dst
	}
	switch r.by {
	case Tree:
		c.treeReduce(r, r.root, dst)
	case Direct:
		c.directReduce(r)
	default:
		parts := shares(r.n, c.size)
		own := c.own(dst, parts[c.rank], r.typ)
		c.scatter(r, own, dst)
		c.settle()
		if c.rank != r.root {
			c.send(r.root, own)
			return
		}
		for i := 1; i < c.size; i++ {
			from := c.after(c.rank, i)
			c.receive(from, c.part(dst, parts[from]))
		}
	}
}

// own returns a member's part of dst, or scratch memory where there is no dst.
func (c *call) own(dst *runtime.Buffer, p Part, t runtime.Type) *runtime.Buffer {
	if dst == nil {
		return c.scratch(t, p.Count)
	}
	return c.part(dst, p)
}

// scatter stores in own the part of the result that belongs to this member. mid has room for what passes through,
// at the places of the parts, or is nil.
func (c *call) scatter(r *request, own, mid *runtime.Buffer) {
	parts := shares(r.src.Len(), c.size)
	if mid != nil && mid.Type() != r.op.between(r.typ) {
		mid = nil
	}
	switch {
	case c.size == 1:
		c.copy(own, r.src)
	case r.by == Ring:
		c.ringScatter(r, parts, own, mid)
	default:
		c.directScatter(r, parts, own)
	}
}

// directScatter has each member send to every other one what that one combines, which takes it in the order of the
// ranks before its own.
func (c *call) directScatter(r *request, parts Placement, own *runtime.Buffer) {
	sum := c.part(r.src, parts[c.rank])
	room := own
	if t := r.op.between(r.typ); t != r.typ && c.size > 2 {
		room = c.scratch(t, parts[c.rank].Count)
	}
	for i := 1; i < c.size; i++ {
		to, from, last := c.after(c.rank, i), c.after(c.rank, -i), i == c.size-1
		dst := room
		if last {
			dst = own
		}
		c.exchange(transfer{to: to, out: c.part(r.src, parts[to]), from: from, typ: r.typ, n: parts[c.rank].Count,
			use: func(got *runtime.Buffer, first int) { c.foldPart(r.op, dst, sum, got, first, last) }})
		sum = dst
	}
}

// ringScatter has each part go once around the ring: it begins behind the member to which it belongs, and every member
// adds its own.
func (c *call) ringScatter(r *request, parts Placement, own, mid *runtime.Buffer) {
	right, left := c.after(c.rank, 1), c.after(c.rank, -1)
	out, t := c.part(r.src, parts[left]), r.typ
	for i := 2; i <= c.size; i++ {
		at, last := c.after(c.rank, -i), i == c.size
		dst := own
		switch {
		case last:
		case mid != nil:
			dst = c.part(mid, parts[at])
		default:
			dst = c.scratch(r.op.between(r.typ), parts[at].Count)
		}
		mine := c.part(r.src, parts[at])
		c.exchange(transfer{to: right, out: out, from: left, typ: t, n: parts[at].Count,
			use: func(got *runtime.Buffer, first int) { c.foldPart(r.op, dst, mine, got, first, last) }})
		out, t = dst, r.op.between(r.typ)
	}
}

// gather passes every member's part of a buffer on to all others.
func (c *call) gather(by Algorithm, b *runtime.Buffer, parts Placement) {
	right, left := c.after(c.rank, 1), c.after(c.rank, -1)
	for i := 1; i < c.size; i++ {
		if by == Ring {
			c.exchange(transfer{to: right, out: c.part(b, parts[c.after(c.rank, 1-i)]), from: left,
				in: c.part(b, parts[c.after(c.rank, -i)])})
			continue
		}
		from := c.after(c.rank, -i)
		c.exchange(transfer{to: c.after(c.rank, i), out: c.part(b, parts[c.rank]), from: from, in: c.part(b, parts[from])})
	}
}

// directReduce has all members send to the root, which takes them in the order of the ranks behind its own.
func (c *call) directReduce(r *request) {
	if c.rank != r.root {
		c.send(r.root, r.src)
		return
	}
	if c.size == 1 {
		c.copy(r.dst, r.src)
	}
	sum, room := r.src, r.dst
	if t := r.op.between(r.typ); t != r.typ && c.size > 2 {
		room = c.scratch(t, r.n)
	}
	for i := 1; i < c.size; i++ {
		dst, last := room, i == c.size-1
		if last {
			dst = r.dst
		}
		c.exchange(transfer{to: -1, from: c.after(c.rank, i), typ: r.typ, n: r.n,
			use: func(got *runtime.Buffer, first int) { c.foldPart(r.op, dst, sum, got, first, last) }})
		sum = dst
	}
}

// treeReduce combines along a binomial tree: the members are counted from the root on, and the parent of one is that
// whose number lacks the lowest bit. The root's result is dst; other members may use it on the way, if it is not nil.
func (c *call) treeReduce(r *request, root int, dst *runtime.Buffer) {
	v := c.after(c.rank, -root)
	between := r.op.between(r.typ)
	children := c.children(v)
	sum, room := r.src, dst
	if len(children) > 0 && (dst == nil || between != r.typ && (v != 0 || len(children) > 1)) {
		room = c.scratch(between, r.n)
	}
	for i, bit := range children {
		to, last := room, v == 0 && i == len(children)-1
		if last {
			to = dst
		}
		t := r.typ
		if len(c.children(v+bit)) > 0 {
			t = between
		}
		c.exchange(transfer{to: -1, from: c.after(c.rank, bit), typ: t, n: r.n,
			use: func(got *runtime.Buffer, first int) { c.foldPart(r.op, to, sum, got, first, last) }})
		sum = to
	}
	if v != 0 {
		c.send(c.after(c.rank, -(v&-v)), sum)
	} else if len(children) == 0 {
		c.copy(dst, r.src)
	}
}

// children returns by how much the numbers of the children of a member in the tree are larger than its own.
func (c *call) children(v int) (bits []int) {
	for bit := 1; v&bit == 0 && v+bit < c.size; bit <<= 1 {
		bits = append(bits, bit)
	}
	return bits
}

// broadcast passes the root's buffer on to all.
func (c *call) broadcast(by Algorithm, root int, b *runtime.Buffer) {
	v := c.after(c.rank, -root)
	switch {
	case by == Tree:
		if v != 0 {
			c.receive(c.after(c.rank, -(v&-v)), b)
		}
		bits := c.children(v)
		for i := range bits { // the largest first: its member has most to pass on
			c.send(c.after(c.rank, bits[len(bits)-1-i]), b)
		}
	case by == Ring:
		c.chain(v, b)
	case v != 0:
		c.receive(root, b)
	default:
		for i := 1; i < c.size; i++ {
			c.send(c.after(root, i), b)
		}
	}
}

// chain passes a buffer from member to member, each of which sends a piece while it receives the next one.
func (c *call) chain(v int, b *runtime.Buffer) {
	pieces := shares(b.Len(), broadcastPieces)
	for i := range len(pieces) + 1 {
		t := transfer{to: -1, from: -1}
		if i > 0 && v < c.size-1 {
			t.to, t.out = c.after(c.rank, 1), c.part(b, pieces[i-1])
		}
		if i < len(pieces) && v > 0 {
			t.from, t.in = c.after(c.rank, -1), c.part(b, pieces[i])
		}
		c.exchange(t)
	}
}

// allToAll has each member send a part to every other one.
func (c *call) allToAll(r *request) {
	parts, src := shares(r.src.Len(), c.size), r.src
	if same(r.dst, src) {
		src = c.scratch(r.typ, src.Len())
		c.copy(src, r.src)
	}
	c.copy(c.part(r.dst, parts[c.rank]), c.part(src, parts[c.rank]))
	for i := 1; i < c.size; i++ {
		to, from := c.after(c.rank, i), c.after(c.rank, -i)
		c.exchange(transfer{to: to, out: c.part(src, parts[to]), from: from, in: c.part(r.dst, parts[from])})
	}
}
