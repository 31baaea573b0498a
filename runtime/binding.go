package runtime

// What a launch of a graph can replace: buffers, and numbers that were recorded as Params.

import (
	"fmt"
	"sync/atomic"
)

// Param is a number among the arguments of a recorded launch that each launch of the graph can
// replace; see WithValue. Anywhere else Launch takes it as its own value.
type Param struct {
	id   uint64
	typ  Type
	bits uint64
}

var paramsMade atomic.Uint64

// NewParam returns a Param with the value that it has where no other is given. The kernel's parameter
// has to be of the same type.
func NewParam[T Element](value T) *Param {
	t, bits := elementOf(value)
	return &Param{paramsMade.Add(1), t, bits}
}

// Binding replaces one thing in one launch of a graph: see WithBuffer and WithValue.
type Binding struct {
	recorded, buffer *Buffer
	param            *Param
	bits             uint64
	err              error
}

// WithBuffer makes a launch of a graph use buffer wherever the graph's calls use recorded or a view of it.
// Both have the same type and length. recorded may be closed. If a call uses memory that is only partly
// recorded's, the launch is ErrInvalidArgument.
func WithBuffer(recorded, buffer *Buffer) Binding {
	b := Binding{recorded: recorded, buffer: buffer}
	switch {
	case recorded.none() || buffer.none():
		b.err = fmt.Errorf("buffer is nil: %w", ErrInvalidArgument)
	case recorded.typ != buffer.typ || recorded.n != buffer.n:
		b.err = fmt.Errorf("%v for %v, and it has to have the same type and length: %w", buffer, recorded, ErrInvalidArgument)
	}
	return b
}

// WithValue makes a launch of a graph use value wherever the graph's calls have p as argument. T is the
// type with which p was made.
func WithValue[T Element](p *Param, value T) Binding {
	t, bits := elementOf(value)
	b := Binding{param: p, bits: bits}
	switch {
	case p == nil:
		b.err = fmt.Errorf("param is nil: %w", ErrInvalidArgument)
	case t != p.typ:
		b.err = fmt.Errorf("%v for a param of %v: %w", t, p.typ, ErrInvalidArgument)
	}
	return b
}
