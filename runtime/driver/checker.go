package driver

// What repeats launches elsewhere to see whether a device computes what it should. Package runtime/validate has one.

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"

	"github.com/concord-compute/concord/source"
)

// Checker chooses launches of a session's devices, and gets copies of the memory that they read and of what they
// stored. It is called from any goroutine that launches, and must not wait there, but for Wait and Close.
type Checker interface {
	// Wants is called before each launch, also before each of those in a graph, with the tally of its kernel on its
	// device. It reports whether the launch is to be checked, and is cheap.
	Wants(t *Tally) bool
	// Admit is called for a launch that Wants chose, with the bytes of the copies. If it returns true, Check follows.
	Admit(bytes int64) bool
	// Check takes a launch that was queued, or one of which Err says why it cannot be checked. It returns at once,
	// and owns the sample, whose Read or Close it has to call.
	Check(s *Sample)
	// Wait waits until as many launches are judged as Admit had admitted before. A device calls it before it is closed.
	Wait()
	// Close is Wait, and Wants chooses nothing any more.
	Close() error
}

// Tally counts the launches of one kernel on one device for a [Checker]. The zero value is due at once.
type Tally struct{ left atomic.Int64 }

// Due counts a launch, and reports whether it is the one that was waited for.
func (t *Tally) Due() bool { return t.left.Add(-1) < 0 }

// Again makes the tally due after about every launches: a random number of them, so that no pattern of the program's
// meets that of the checks. With 1 the next launch is due. More than math.MaxInt32 are as many.
func (t *Tally) Again(every int, r *rand.Rand) {
	t.left.Store(r.Int64N(max(2*int64(min(every, math.MaxInt32))-1, 1)))
}

// Sample is one launch with copies of its memory.
type Sample struct {
	Device         string // its Info.ID
	Unit           *source.Unit
	Kernel         string
	Implementation string // the form of the code that ran
	Native         bool   // it was the device's own implementation
	Dim            int
	Global, Local  [3]int
	Args           []SampleArg
	Regions        []SampleRegion
	Bytes          int64 // that Admit admitted
	Err            error // why there is nothing to check, or nil

	// Read waits for the launch and fills in Before and After of the regions. It is called once, and the copies on the
	// device end with it.
	Read func(ctx context.Context) error
	// Close gives the copies on the device back, where Read is not called.
	Close func()
}

// SampleArg is an argument of a [Sample].
type SampleArg struct {
	Kind    ArgKind
	Value   []byte // of ArgValue
	Local   int    // bytes, of ArgLocal
	Type    Type   // of the elements of ArgMemory
	Written bool   // of ArgMemory: the kernel may store there

	// The part of a region that is the memory of ArgMemory. Bytes is 0 for a buffer without elements.
	Region        int
	Offset, Bytes int
}

// SampleRegion is a range of memory, which several arguments have where they overlap.
type SampleRegion struct {
	Bytes  int
	Before []byte
	After  []byte // nil if no argument is written
}

// newChecker is what RegisterChecker has set.
var newChecker atomic.Pointer[func(cfg *Config) (Checker, error)]

// RegisterChecker sets what makes the checker of a session with Config.Validate. Package runtime/validate calls it.
func RegisterChecker(start func(cfg *Config) (Checker, error)) { newChecker.Store(&start) }

// NewChecker makes the checker of a session. It is ErrUnsupported in a program without one.
func NewChecker(cfg *Config) (Checker, error) {
	start := newChecker.Load()
	if start == nil {
		return nil, fmt.Errorf("the program does not import package runtime/validate, which CONCORD_VALIDATE and "+
			"Config.Validate need: %w", ErrUnsupported)
	}
	return (*start)(cfg)
}
