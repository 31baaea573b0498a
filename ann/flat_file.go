package ann

// A Flat index in a file.

import (
	"context"
	"io"
	"slices"
)

// WriteTo implements [Index].
func (f *Flat) WriteTo(to io.Writer) (int64, error) {
	if _, err := f.begin(context.Background(), 0, 1, nil, false); err != nil { // which puts the rows in order
		return 0, err
	}
	defer f.mu.RUnlock()
	return f.writeTo(to, saved{})
}

// sections implements contents.
func (f *Flat) sections() []section {
	vectors := func(yield func([]byte, error) bool) {
		for i, s := range f.stores {
			for part, err := range s.parts(f.place[i].Count) {
				if !yield(part, err) {
					return
				}
			}
		}
	}
	return []section{data("ids", f.ids), data("order", f.ranks()), {name: "vectors", parts: vectors}}
}

// open implements contents.
func (f *Flat) open(ctx context.Context, m *image, inPlace bool) error {
	f.sorted = m.Rows
	if m.Rows == 0 {
		return nil
	}
	f.place = f.shares(m.Rows)
	for i, s := range f.stores {
		if p := f.place[i]; len(f.stores) > 1 {
			c, err := s.bring(ctx, m.vectors[s.size(p.First):s.size(p.End())], p.Count)
			if err != nil {
				return err
			}
			c.memory = slices.Clone(c.memory)
			s.commit(ctx, c, p.Count)
		}
	}
	return nil
}

// fill implements contents.
func (f *Flat) fill(m *image) error {
	f.rank(m.order)
	return nil
}
