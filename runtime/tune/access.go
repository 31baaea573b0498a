package tune

// How a list of offsets walks through memory.

// Access is how a sequence of offsets walks through memory.
type Access int

// The ways.
const (
	Random     Access = iota
	Sequential        // each behind the one before
	Strided           // by the same step other than 1
)

// String returns the way as a word.
func (a Access) String() string {
	if names := [...]string{"random", "sequential", "strided"}; a >= 0 && int(a) < len(names) {
		return names[a]
	}
	return "unknown"
}

// AccessPattern says how a sequence of offsets, in elements, walks through memory, and
// by which step. Nine of ten steps decide; without two offsets there is no step, which
// counts as Random. Time is linear in the offsets.
func AccessPattern(offsets []int64) (Access, int64) {
	if len(offsets) < 2 {
		return Random, 0
	}
	// The only value that can make up more than half is the one that is left when
	// different ones cancel each other.
	var step, votes int64
	for i := 1; i < len(offsets); i++ {
		switch d := offsets[i] - offsets[i-1]; {
		case votes == 0:
			step, votes = d, 1
		case d == step:
			votes++
		default:
			votes--
		}
	}
	same := 0
	for i := 1; i < len(offsets); i++ {
		if offsets[i]-offsets[i-1] == step {
			same++
		}
	}
	switch {
	case 10*same < 9*(len(offsets)-1):
		return Random, 0
	case step == 1:
		return Sequential, 1
	}
	return Strided, step
}
