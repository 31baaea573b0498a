package cluster

// Members of several processes: every transfer is an exchange of the link, in pieces, between memory of the host.

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/concord-compute/concord/runtime"
)

// linkPiece is the number of bytes of the messages into which transfers are divided: by all members alike, whatever
// their devices, so that the lengths agree.
const linkPiece = 4 << 20

// linkPort is the port of the one member of a process.
type linkPort struct {
	group *Group
	link  Link
	rank  int

	left context.Context // done when the group is being closed
	stop context.CancelFunc

	visible *bool // whether the host sees the device's memory; nil before the first transfer
	stages  stages
}

func newLinkPort(g *Group, rank int, link Link) *linkPort {
	p := &linkPort{group: g, link: link, rank: rank}
	p.left, p.stop = context.WithCancel(context.Background())
	return p
}

// meet makes an exchange of bytes. One that waits until others call ends when the group is being closed.
func (p *linkPort) meet(c *call, to int, out []byte, from int, in []byte, waits bool) error {
	ctx, cancel := c.step()
	defer cancel()
	if waits {
		defer context.AfterFunc(p.left, cancel)()
	}
	if to < 0 {
		out = nil
	}
	if from < 0 {
		in = nil
	}
	err := p.link.Exchange(ctx, to, out, from, in)
	switch named, ok := errors.AsType[*MemberError](err); {
	case err == nil:
		return nil
	case waits && p.left.Err() != nil:
		return errLeft
	case ok:
		return named
	case from >= 0:
		return c.late(from, err)
	}
	return c.late(to, err)
}

// agree implements port. In each of log₂k rounds a member tells one, and hears from another one, whether all that it
// has heard of call the same: after the last round it has heard of all, directly or not. Only if they differ do they
// tell each other what they call.
func (p *linkPort) agree(c *call, e entry) error {
	own := encodeEntry(e)
	agreed := binary.LittleEndian.Uint64(own[:8])
	if e.err != nil {
		agreed = 0
	}
	for by := 1; by < c.size; by <<= 1 {
		var out, in [8]byte
		binary.LittleEndian.PutUint64(out[:], agreed)
		if err := p.meet(c, c.after(c.rank, by), out[:], c.after(c.rank, -by), in[:], true); err != nil {
			return err
		}
		if binary.LittleEndian.Uint64(in[:]) != agreed {
			agreed = 0
		}
	}
	if agreed != 0 {
		return nil
	}
	all, err := p.gather(c, own)
	if err != nil {
		return err
	}
	entries := make([]entry, c.size)
	for i, bytes := range all {
		entries[i] = decodeEntry(bytes)
	}
	if err := entries[c.rank].err; err != nil {
		entries[c.rank].err = e.err // with all that it wraps
	}
	return judge(entries)
}

// gather returns what every member has, by rank: as many bytes of each.
func (p *linkPort) gather(c *call, own []byte) ([][]byte, error) {
	all := make([][]byte, c.size)
	all[c.rank] = own
	for i := 1; i < c.size; i++ {
		from := c.after(c.rank, -i)
		all[from] = make([]byte, len(own))
		if err := p.meet(c, c.after(c.rank, 1), all[c.after(c.rank, 1-i)], c.after(c.rank, -1), all[from],
			false); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// failed implements port.
func (p *linkPort) failed() error {
	if w, ok := p.link.(Watcher); ok {
		return w.Err()
	}
	return nil
}

// exchange implements port.
func (p *linkPort) exchange(c *call, t transfer) error {
	if err := p.look(c); err != nil {
		return err
	}
	p.group.traffic.link.Add(int64(t.n) * int64(t.typ.Size()))
	if *p.visible {
		return p.inPlace(c, t)
	}
	return p.staged(c, t)
}

// look finds out whether the host sees the device's memory.
func (p *linkPort) look(c *call) error {
	if p.visible != nil {
		return nil
	}
	b, err := c.m.dev.Alloc(runtime.U8, 1)
	if err != nil {
		return err
	}
	defer b.Close()
	_, err = runtime.HostBytes(b)
	p.visible = new(err == nil)
	return nil
}

// pieces calls f for each piece of a transfer, with its number and where it lies in what is sent and received.
func (t *transfer) pieces(f func(i int, out, in Part) error) error {
	var sent, received int
	if t.out != nil {
		sent = int(t.out.Bytes())
	}
	if t.from >= 0 {
		received = t.n * t.typ.Size()
	}
	for i, off := 0, 0; off < max(sent, received); i, off = i+1, off+linkPiece {
		cut := func(n int) Part { return Part{min(off, n), min(linkPiece, max(n-off, 0))} }
		if err := f(i, cut(sent), cut(received)); err != nil {
			return err
		}
	}
	return nil
}

// elements returns a part of a buffer that is given in bytes.
func (c *call) elements(b *runtime.Buffer, bytes Part) *runtime.Buffer {
	size := b.Type().Size()
	return c.part(b, Part{bytes.First / size, bytes.Count / size})
}

// peers returns the ranks of an exchange of a piece.
func (t *transfer) peers(out, in Part) (to, from int) {
	to, from = t.to, t.from
	if out.Count == 0 {
		to = -1
	}
	if in.Count == 0 {
		from = -1
	}
	return to, from
}

// inPlace makes a transfer between memory that the host sees. Of what goes through a kernel two pieces are kept, so
// that one is received while the kernel reads the other.
func (p *linkPort) inPlace(c *call, t transfer) error {
	if err := c.sync(); err != nil {
		return err
	}
	var sent, room []byte
	var err error
	if t.out != nil {
		if sent, err = runtime.HostBytes(t.out); err != nil {
			return err
		}
	}
	scratch := t.in
	if t.in == nil && t.from >= 0 {
		scratch = c.scratch(t.typ, min(t.n, 2*linkPiece/t.typ.Size()))
	}
	if c.err != nil {
		return c.err
	}
	if scratch != nil {
		if room, err = runtime.HostBytes(scratch); err != nil {
			return err
		}
	}
	return t.pieces(func(i int, out, in Part) error {
		at, slot := in, &p.stages.in[i%2]
		if t.in == nil {
			at.First = i % 2 * linkPiece
			if err := slot.wait(c); err != nil {
				return err
			}
		}
		to, from := t.peers(out, in)
		if err := p.meet(c, to, sent[out.First:out.First+out.Count], from, cutBytes(room, at), false); err != nil {
			return err
		}
		if t.in != nil || in.Count == 0 {
			return nil
		}
		t.use(c.elements(scratch, at), in.First/t.typ.Size())
		return slot.used(c)
	})
}

// cutBytes returns a part of bytes, none of which may be there.
func cutBytes(b []byte, p Part) []byte {
	if p.Count == 0 {
		return nil
	}
	return b[p.First : p.First+p.Count]
}

// sync waits until the work of the call's stream is done.
func (c *call) sync() error {
	step, cancel := c.step()
	defer cancel()
	return c.late(c.rank, c.s.Sync(step))
}

// pass implements port: first the receivers tell the senders whether they take what these have, then it moves.
func (p *linkPort) pass(c *call, r *request) error {
	if r.to == c.rank {
		if err := differ(c.rank, r.dst, c.rank, r.src.Type(), r.src.Len()); err != nil {
			return err
		}
		c.copy(r.dst, r.src)
		return c.err
	}
	const bytes = 16
	var offer, offered, want, wanted [bytes]byte
	put := func(to *[bytes]byte, b *runtime.Buffer) {
		binary.LittleEndian.PutUint64(to[:], uint64(b.Type()))
		binary.LittleEndian.PutUint64(to[8:], uint64(b.Len()))
	}
	get := func(from *[bytes]byte) (runtime.Type, int) {
		return runtime.Type(binary.LittleEndian.Uint64(from[:])), int(binary.LittleEndian.Uint64(from[8:]))
	}
	if r.to >= 0 {
		put(&offer, r.src)
	}
	if r.from >= 0 {
		put(&want, r.dst)
	}
	if err := p.meet(c, r.to, offer[:], r.from, offered[:], true); err != nil {
		return err
	}
	if err := p.meet(c, r.from, want[:], r.to, wanted[:], false); err != nil {
		return err
	}
	t := transfer{to: r.to, from: r.from}
	var refused error
	if r.from >= 0 {
		typ, n := get(&offered)
		if refused = differ(c.rank, r.dst, r.from, typ, n); refused != nil {
			t.from = -1
		} else {
			t.in = r.dst
		}
	}
	if r.to >= 0 {
		if typ, n := get(&wanted); typ != r.src.Type() || n != r.src.Len() {
			refused = errors.Join(refused, mismatch(r.to, typ, n, c.rank, r.src.Type(), r.src.Len()))
			t.to = -1
		} else {
			t.out = r.src
		}
	}
	c.exchange(t)
	if c.err != nil {
		return c.err
	}
	return refused
}

// settle implements port: exchanges are done when they return.
func (p *linkPort) settle(*call) error { return nil }

// tell implements port.
func (p *linkPort) tell(err *MemberError) {
	if b, ok := p.link.(Breaker); ok {
		b.Break(err)
	}
}

// leave implements port.
func (p *linkPort) leave() { p.stop() }

// close implements port.
func (p *linkPort) close() error { return errors.Join(p.stages.close(), p.link.Close()) }

// entryBytes is the size of an entry that members send to each other: the checksum of its call, the call, the kind of
// its error and its text.
const entryBytes = 512

func encodeEntry(e entry) []byte {
	b := make([]byte, entryBytes)
	s := e.call
	copy(b[8:], []byte{byte(s.kind), byte(s.op), byte(s.typ), byte(s.by)})
	binary.LittleEndian.PutUint64(b[12:], uint64(s.n))
	binary.LittleEndian.PutUint64(b[20:], uint64(s.root))
	binary.LittleEndian.PutUint64(b, checksum(b[8:28]))
	if e.err != nil {
		b[28] = 1
		b[29] = byte(KindOf(e.err))
		n := copy(b[32:], e.err.Error())
		binary.LittleEndian.PutUint16(b[30:], uint16(n))
	}
	return b
}

func decodeEntry(b []byte) entry {
	e := entry{call: signature{kind: kind(min(b[8], byte(pass))), op: Op(b[9]), typ: runtime.Type(b[10]),
		by: Algorithm(b[11]), n: int(binary.LittleEndian.Uint64(b[12:])), root: int(binary.LittleEndian.Uint64(b[20:]))}}
	if b[28] != 0 {
		n := min(int(binary.LittleEndian.Uint16(b[30:])), entryBytes-32)
		e.err = RemoteError(int(b[29]), string(b[32:32+n]))
	}
	return e
}

// checksum is FNV-1a, but never 0.
func checksum(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, x := range b {
		h = (h ^ uint64(x)) * 1099511628211
	}
	return max(h, 1)
}

// mismatch is the error of a member that does not receive what another one sends.
func mismatch(to int, in runtime.Type, want, from int, out runtime.Type, n int) error {
	return &MemberError{Rank: to, refused: true, pair: true, Err: fmt.Errorf(
		"it receives %d %v, and member %d sends %d %v: %w", want, in, from, n, out, runtime.ErrInvalidArgument)}
}
