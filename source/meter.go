package source

import "context"

// meter counts the work on one program, looks after the caller's context, and ends what
// takes too much. The work is deeply recursive and has no other errors on its way, so it
// ends by a panic that settle turns into an error.
type meter struct {
	ctx   context.Context
	steps int
	most  int // steps at which within gives up; 0: it is not running
	bytes int // of text written
}

// checkSteps is how many steps are taken between two looks at the context: some tens of
// microseconds.
const checkSteps = 1 << 10

// ended is what the work panics with when its context is done, or a limit is reached.
type ended struct{ err error }

// spent is what work inside of within panics with when it takes too many steps.
type spent struct{}

func newMeter(ctx context.Context) *meter { return &meter{ctx: ctx} }

// step counts one step.
func (m *meter) step() {
	m.steps++
	if m.steps%checkSteps == 0 && m.ctx.Err() != nil {
		panic(ended{context.Cause(m.ctx)})
	}
	if m.most > 0 && m.steps > m.most {
		panic(spent{})
	}
}

// within reports whether do ended within a number of steps. It is stopped when it did not.
func (m *meter) within(steps int, do func()) (done bool) {
	defer func() {
		m.most = 0
		switch r := recover().(type) {
		case nil, spent:
		default:
			panic(r)
		}
	}()
	m.most = m.steps + steps
	do()
	return true
}

// wrote counts text that was written for what stands at pos.
func (m *meter) wrote(n int, pos Pos) {
	m.step()
	if m.bytes += n; m.bytes > maxRendered {
		var list ErrorList
		list.add(pos, "limit", "the rendering is larger than %d bytes", maxRendered)
		panic(ended{list})
	}
}

// settle, deferred, makes the error of what a meter has ended.
func settle(err *error) {
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
