package tune

// Patterns of memory access.

// Access is the pattern of a sequence of offsets.
type Access int

// The patterns.
const (
	Random     Access = iota
	Sequential        // each offset follows the one before
	Strided           // all steps are the same, and not 1
)

// String returns the pattern as a word.
func (a Access) String() string {
	if names := [...]string{"random", "sequential", "strided"}; a >= 0 && int(a) < len(names) {
		return names[a]
	}
	return "unknown"
}

// AccessPattern returns the pattern of a sequence of offsets, in elements, and its step. At least
// nine of ten steps must agree; fewer than two offsets have no step, and are Random. Time is linear
// in the number of offsets.
func AccessPattern(offsets []int64) (Access, int64) {
	if len(offsets) < 2 {
		return Random, 0
	}
	// Majority vote: only the value that is left when different ones cancel each other out can make
	// up more than half.
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
