//go:build cgo && unix

package cgo

// The names of what a stream was given and has not been seen to end: drivers
// report that something failed, not what.

import (
	"fmt"
	"strings"
	"sync"
)

const (
	opsKept  = 64 // names remembered of a stream
	opsShown = 8  // different names in a message
)

// ops numbers the operations of a stream. Pushing allocates nothing.
type ops struct {
	mu     sync.Mutex
	names  [opsKept]string
	pushed uint64 // operations queued so far
	done   uint64 // of these, known to be complete
}

func (o *ops) push(name string) {
	o.mu.Lock()
	o.names[o.pushed%opsKept] = name
	o.pushed++
	o.mu.Unlock()
}

// now is the number of operations queued so far.
func (o *ops) now() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pushed
}

// settle notes that the first n operations are complete.
func (o *ops) settle(n uint64) {
	o.mu.Lock()
	o.done = max(o.done, n)
	o.mu.Unlock()
}

// settled is the number of operations known to be complete.
func (o *ops) settled() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.done
}

// open adds the open ones of the first upTo operations to a list.
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

// opList is the open operations of one or more streams, by name.
type opList struct {
	count     uint64
	forgotten bool // the oldest names are not known any more
	names     []string
	times     []int
}

func (l *opList) add(name string) {
	for i := range l.names {
		if l.names[i] == name {
			l.times[i]++
			return
		}
	}
	l.names, l.times = append(l.names, name), append(l.times, 1)
}

// String names the operation if it can be only one, else all that it can be, and
// is empty if there is none.
func (l *opList) String() string {
	switch {
	case l.count == 0:
		return ""
	case l.count == 1 && len(l.names) == 1:
		return l.names[0]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "one of %d operations (", l.count)
	if l.forgotten {
		b.WriteString("..., ")
	}
	for i, name := range l.names {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == opsShown {
			b.WriteString("...")
			break
		}
		b.WriteString(name)
		if l.times[i] > 1 {
			fmt.Fprintf(&b, " x %d", l.times[i])
		}
	}
	b.WriteString(")")
	return b.String()
}
