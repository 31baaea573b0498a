package tune

// The results of kernels that no reference judges.

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
)

// errUnjudged is that of a launch that package validate did not judge.
var errUnjudged = errors.New("the result was not judged")

// same judges what a candidate stores by what the defaults store: each number has to be the same. So are kernels judged
// that have no bound, such as nearest, as which vectors it finds depends on the rounding of distances that are almost
// equal. Results are cleared before, so that a launch that stores nothing is found out.
func (m *measurement) same(ctx context.Context, l *launch, usual, own func() error) error {
	var results []*runtime.Buffer
	for i, p := range l.usual.kernel.Params() {
		if b, ok := l.args[i].(*runtime.Buffer); ok && !p.Const {
			results = append(results, b)
		}
	}
	stream := m.dev.Stream()
	store := func(launch func() error) (list [][]byte, err error) {
		for _, b := range results {
			if err := stream.Fill(b, bytes.Repeat([]byte{0xa5}, b.Type().Size())); err != nil {
				return nil, err
			}
		}
		if err := launch(); err != nil {
			return nil, err
		}
		for _, b := range results {
			stored := make([]byte, b.Bytes())
			if err := stream.Read(ctx, b, 0, stored); err != nil {
				return nil, err
			}
			list = append(list, stored)
		}
		return list, nil
	}
	want, err := store(usual)
	if err != nil {
		return err
	}
	got, err := store(own)
	if err != nil {
		return err
	}
	for i, b := range results {
		if v := kernels.Judge(b.Type().String(), want[i], got[i], nil); !v.OK {
			return fmt.Errorf("wrong result: not that of the defaults: %v", v)
		}
	}
	return nil
}
