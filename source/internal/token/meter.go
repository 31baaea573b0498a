package token

import "context"

// Meter counts the work on one program, and ends it when the caller's context is done or a limit is
// exceeded. Since the work is deeply recursive and mostly cannot fail otherwise, it ends by a
// panic, which Settle turns into an error.
type Meter struct {
	ctx   context.Context
	Steps int // taken so far
	most  int // the value of Steps at which Within gives up; 0 outside of Within
	bytes int // length of the text written so far
}

// checkSteps is how many steps are taken between two looks at the context: some tens of
// microseconds.
const checkSteps = 1 << 10

// ended is the panic value when the context is done or a limit is reached.
type ended struct{ err error }

// spent is the panic value of work inside Within that takes too many steps.
type spent struct{}

// NewMeter returns a meter for one program, which ends the work on it soon after ctx is done.
func NewMeter(ctx context.Context) *Meter { return &Meter{ctx: ctx} }

// Step counts one step.
func (m *Meter) Step() {
	m.Steps++
	if m.Steps%checkSteps == 0 && m.ctx.Err() != nil {
		panic(ended{context.Cause(m.ctx)})
	}
	if m.most > 0 && m.Steps > m.most {
		panic(spent{})
	}
}

// Within runs do, stops it after a number of steps, and reports whether it ended before that.
func (m *Meter) Within(steps int, do func()) (done bool) {
	defer func() {
		m.most = 0
		switch r := recover().(type) {
		case nil, spent:
		default:
			panic(r)
		}
	}()
	m.most = m.Steps + steps
	do()
	return true
}

// Wrote counts n bytes of text that was written for the construct at pos.
func (m *Meter) Wrote(n int, pos Pos) {
	m.Step()
	if m.bytes += n; m.bytes > maxRendered {
		var list ErrorList
		list.Add(pos, "limit", "the rendering is larger than %d bytes", maxRendered)
		panic(ended{list})
	}
}

// Settle has to be deferred. It sets err if a meter has ended the work.
func Settle(err *error) {
	switch r := recover().(type) {
	case nil:
	case ended:
		*err = r.err
	default:
		panic(r)
	}
}

// maxRendered is the largest size of a rendering in bytes.
const maxRendered = 64 << 20
