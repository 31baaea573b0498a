package ann

// The precision of an index changes.

import (
	"context"
	"fmt"
	"math"

	"github.com/concord-compute/concord/runtime"
)

// SetPrecision converts the vectors of an index of kind flat or gpu, as [Flat.SetPrecision] does. Other kinds store
// their vectors in one way, which is [runtime.ErrUnsupported].
func SetPrecision(ctx context.Context, ix Index, p Precision) error {
	f, ok := ix.(*Flat)
	if !ok {
		return fmt.Errorf("ann: another precision for an index of type %T: %w", ix, runtime.ErrUnsupported)
	}
	return f.SetPrecision(ctx, p)
}

// SetPrecision converts the stored vectors, and from then on all that are added and all queries. What a vector has lost
// in a smaller precision does not come back. With [INT8Scaled] the scale follows from the vectors that there are.
//
// It waits for searches that run, and later ones wait for it. Until it is over the vectors are stored twice, in the
// host's memory if the device has no room for both. An error, also that of ctx, leaves the index as it was: a finite
// component that is too large for [FP16] is [runtime.ErrInvalidArgument]. For an index that [New] made as kind brute it
// is [runtime.ErrUnsupported], as in New.
func (f *Flat) SetPrecision(ctx context.Context, p Precision) error {
	if err := p.check(); err != nil {
		return err
	}
	return f.changeExclusive(ctx, func() error {
		switch {
		case f.kind == "brute" || f.kind == "bruteforce":
			return fmt.Errorf("ann: another precision for an index of kind %s: %w", f.kind, runtime.ErrUnsupported)
		case p == f.e.code.Precision:
			return nil
		}
		if err := f.settle(ctx); err != nil {
			return err
		}
		code, err := f.codeIn(ctx, p)
		if err != nil {
			return err
		}
		return f.convert(ctx, code)
	})
}

// codeIn returns the coding in which the vectors of the index can be stored.
func (f *Flat) codeIn(ctx context.Context, p Precision) (coding, error) {
	if p != FP16 && p != INT8Scaled {
		return p.scaleOf(nil), nil
	}
	most := []float32{0}
	for i, s := range f.stores {
		err := f.decoded(ctx, s, f.place[i].Count, func(first int, vectors []float32) error {
			if at := overHalf(vectors); p == FP16 && at >= 0 {
				return fmt.Errorf("ann: component %d of the vector with the id %d is %v, and halves end at 65504: %w",
					at%f.e.dim, f.ids[f.place[i].First+first+at/f.e.dim], vectors[at], runtime.ErrInvalidArgument)
			}
			most[0] = max(most[0], float32(reachOf(vectors)))
			return nil
		})
		if err != nil {
			return coding{}, err
		}
	}
	return p.scaleOf(most), nil
}

// convert stores all vectors in another coding.
func (f *Flat) convert(ctx context.Context, code coding) (err error) {
	var next []*store
	changes := make([]change, len(f.stores))
	defer func() {
		if err == nil {
			return
		}
		for i, s := range next {
			changes[i].cancel()
			_ = s.close() // which has nothing yet
		}
	}()
	for i, s := range f.stores {
		e, err := newEngine(s.e.dev, f.e.dim, f.e.metric, code.Precision)
		if err != nil {
			return err
		}
		e.code = code
		next = append(next, newStore(e))
		if changes[i], err = f.convertStore(ctx, s, next[i], f.place[i].Count); err != nil {
			return err
		}
	}
	old := f.stores
	f.stores, f.e, f.scaled = next, next[0].e, len(f.ids) > 0
	f.state++
	for _, s := range old {
		_ = s.close() // the index does not need it any more
	}
	for i, c := range changes {
		next[i].commit(ctx, c, f.place[i].Count)
	}
	return nil
}

// convertStore returns the change by which to gets the rows of from.
func (f *Flat) convertStore(ctx context.Context, from, to *store, rows int) (c change, err error) {
	if rows == 0 {
		return c, nil
	}
	each := func(put func(at int, part []byte) error) error {
		var piece []byte
		return f.decoded(ctx, from, rows, func(first int, vectors []float32) error {
			if n := len(vectors) * to.e.code.size(); len(piece) < n {
				piece = make([]byte, n)
			}
			part := piece[:len(vectors)*to.e.code.size()]
			to.e.code.encode(part, vectors)
			return put(to.size(first), part)
		})
	}
	stream := to.e.dev.Stream()
	c.base, err = to.filled(rows, func(base *runtime.Buffer) error {
		if err := each(func(at int, part []byte) error { return stream.Write(ctx, base, int64(at), part) }); err != nil {
			return err
		}
		return stream.Sync(ctx)
	})
	if short(err) {
		c.base, c.why, c.memory = nil, err, make([]byte, to.size(rows))
		err = each(func(at int, part []byte) error {
			copy(c.memory[at:], part)
			return nil
		})
	}
	return c, err
}

// decoded calls a function for the first rows of a store, some after the other, as numbers. They are valid until it
// returns.
func (f *Flat) decoded(ctx context.Context, s *store, rows int, do func(first int, vectors []float32) error) error {
	each := min(rows, max(1, pieceSize/s.size(1)))
	stored, vectors := make([]byte, s.size(each)), make([]float32, each*f.e.dim)
	for first := 0; first < rows; first += each {
		n := min(each, rows-first)
		if err := s.read(ctx, int64(s.size(first)), stored[:s.size(n)]); err != nil {
			return err
		}
		s.e.code.decode(vectors, stored[:s.size(n)])
		if err := do(first, vectors[:n*f.e.dim]); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// overHalf returns the place of the first finite component that is infinite as a half, or -1.
func overHalf(vectors []float32) int {
	for i, x := range vectors {
		if a := math.Abs(float64(x)); a >= 65520 && !math.IsInf(a, 0) {
			return i
		}
	}
	return -1
}
