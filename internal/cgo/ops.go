//go:build cgo && unix

package cgo

// The names of a stream's operations that are not known to be complete. Drivers report that an
// operation failed, but not which one; error messages name the possible ones.

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

const (
	opsKept  = 64 // names remembered per stream
	opsShown = 8  // different names in a message
)

// ops numbers the operations of a stream. Pushing allocates nothing.
type ops struct {
	mu     sync.Mutex
	names  [opsKept]string
	pushed uint64 // operations queued so far
	done   uint64 // operations known to be complete
}

func (o *ops) push(name string) {
	o.mu.Lock()
	o.names[o.pushed%opsKept] = name
	o.pushed++
	o.mu.Unlock()
}

// now returns the number of operations queued so far.
func (o *ops) now() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pushed
}

// settle records that the first n operations are complete.
func (o *ops) settle(n uint64) {
	o.mu.Lock()
	o.done = max(o.done, n)
	o.mu.Unlock()
}

// settled returns the number of operations known to be complete.
func (o *ops) settled() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.done
}

// open adds those of the first upTo operations that are not known to be complete to a list.
func (o *ops) open(l *opList, upTo uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	upTo = min(upTo, o.pushed)
	if upTo <= o.done {
		return
	}
	l.count += upTo - o.done
	first := o.done
	if o.pushed > opsKept {
		first = max(first, o.pushed-opsKept)
	}
	l.forgotten = l.forgotten || first > o.done
	for n := first; n < upTo; n++ {
		l.add(o.names[n%opsKept])
	}
}

// opList holds the names of the open operations of one or more streams.
type opList struct {
	count     uint64
	forgotten bool // the oldest names are lost
	names     []string
	times     []int
}

func (l *opList) add(name string) {
	if i := slices.Index(l.names, name); i >= 0 {
		l.times[i]++
		return
	}
	l.names, l.times = append(l.names, name), append(l.times, 1)
}

// String returns the name of the operation if there is only one, the names of all candidates if
// there are several, and "" if there is none.
func (l *opList) String() string {
	switch {
	case l.count == 0:
		return ""
	case l.count == 1 && len(l.names) == 1:
		return l.names[0]
	}
	var shown []string
	if l.forgotten {
		shown = append(shown, "...")
	}
	for i, name := range l.names {
		if i == opsShown {
			shown = append(shown, "...")
			break
		}
		if l.times[i] > 1 {
			name = fmt.Sprintf("%s x %d", name, l.times[i])
		}
		shown = append(shown, name)
	}
	return fmt.Sprintf("one of %d operations (%s)", l.count, strings.Join(shown, ", "))
}
