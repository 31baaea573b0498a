package token

import "context"

// Meter counts the work on one program, looks after the caller's context, and ends what
// takes too much. The work is deeply recursive and has no other errors on its way, so it
// ends by a panic that Settle turns into an error.
type Meter struct {
	ctx   context.Context
	Steps int // taken so far
	most  int // steps at which Within gives up; 0: it is not running
	bytes int // of text written
}

// checkSteps is how many steps are taken between two looks at the context: some tens of
// microseconds.
const checkSteps = 1 << 10

// ended is what the work panics with when its context is done, or a limit is reached.
type ended struct{ err error }

// spent is what work inside of Within panics with when it takes too many steps.
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

// Within reports whether do ended within a number of steps. It is stopped when it did not.
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

// Wrote counts text that was written for what stands at pos.
func (m *Meter) Wrote(n int, pos Pos) {
	m.Step()
	if m.bytes += n; m.bytes > maxRendered {
		var list ErrorList
		list.Add(pos, "limit", "the rendering is larger than %d bytes", maxRendered)
		panic(ended{list})
	}
}

// Settle, deferred, makes the error of what a meter has ended.
func Settle(err *error) {
	switch r := recover().(type) {
	case nil:
	case ended:
		*err = r.err
	default:
		panic(r)
	}
}

// maxRendered bounds a rendering, in bytes.
const maxRendered = 64 << 20
