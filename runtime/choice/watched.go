//go:build watchedchoices

package choice

import "sync"

var watches sync.Map // func(c *Choice) by *Set

// Watch returns a set of the defaults that calls read with each choice whose value it is asked for, on the goroutine
// that asks. Only builds with the tag watchedchoices have it: in others a compiler puts Of where it is called.
func Watch(read func(c *Choice)) *Set {
	s := &Set{values: []int{}}
	watches.Store(s, read)
	return s
}

// Of returns the value of a choice.
func (s *Set) Of(c *Choice) int {
	if read, ok := watches.Load(s); ok {
		read.(func(c *Choice))(c)
	}
	if s == nil || c.at == 0 || c.at > len(s.values) {
		return c.Default
	}
	return s.values[c.at-1]
}
