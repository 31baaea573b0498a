package tune

// What the tuner measures: launches of kernels whose speed depends on choices.

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/source"
)

// Subject is an operation at several sizes that are tuned together, since they read the same choices. Results are
// judged by the kernel's float64 reference, or, of a kernel that has no bound, by those of the defaults: these have to
// be the same.
type Subject struct {
	Name   string   // "gemm f32"
	Reads  []string // the choices that are tried, or what their names begin with before a dot
	Points []Point
	Seldom bool // programs seldom spend their time there: without Options.Only it comes last, and gets less of the time

	measured bool // the choices are costs, which follow from what is measured: points have names only
}

// Point is a launch of a kernel of the catalog.
type Point struct {
	Name           string // "1024"
	Family, Kernel string
	Defines        []source.Define
	Portable       bool  // the kernel is compiled from its text, also where the device has an implementation of its own
	Sizes          []int // of the grid, see kernels.Geometry
	// Args are numbers as a launch takes them, and a Buffer for each buffer.
	Args  []any
	Flops float64 // the operations of a launch, and the bytes that it reads and writes, each once
	Bytes float64
}

// buffers returns the bytes of the buffers of a launch.
func (p *Point) buffers() (sum int64) {
	for _, a := range p.Args {
		if b, ok := a.(Buffer); ok {
			sum += int64(b.Len) * int64(b.Type.Size())
		}
	}
	return sum
}

// work returns by how much the launch takes longer than others of the subject, about.
func (p *Point) work() float64 { return p.Flops + 4*p.Bytes + 1 }

// Buffer is a buffer of a Point. It has random numbers from Least to Most, between -1 and 1 if both are 0.
type Buffer struct {
	Type        runtime.Type
	Len         int
	Least, Most float64
	Sorted      bool // the numbers ascend
}

// numbers returns the contents of a buffer.
func (b *Buffer) numbers(random *rand.Rand) []float64 {
	least, most := b.Least, b.Most
	if least == 0 && most == 0 {
		least, most = -1, 1
	}
	list := make([]float64, b.Len)
	for i := range list {
		list[i] = least + (most-least)*random.Float64()
	}
	if b.Sorted {
		slices.Sort(list)
	}
	return list
}

// subjects are those of [Subjects], in the order in which they are tuned.
var subjects []Subject

// Register adds a subject. It is meant for init functions. It panics if the subject has no name, no choices or no
// points, or the name is taken.
func Register(s Subject) {
	if s.Name == "" || len(s.Reads) == 0 || len(s.Points) == 0 ||
		slices.ContainsFunc(subjects, func(o Subject) bool { return o.Name == s.Name }) {
		panic(fmt.Sprintf("tune: subject %q has no name, reads no choices, has no points, or is registered twice", s.Name))
	}
	subjects = append(subjects, s)
}

// Subjects returns what the tuner can measure on a device that has the given choices.
func Subjects(choices []*choice.Choice) []Subject {
	return slices.DeleteFunc(slices.Clone(subjects), func(s Subject) bool { return len(s.choices(choices)) == 0 })
}

// choices returns those of the given choices that the subject reads.
func (s *Subject) choices(all []*choice.Choice) []*choice.Choice {
	return slices.DeleteFunc(slices.Clone(all), func(c *choice.Choice) bool {
		return !slices.ContainsFunc(s.Reads, func(p string) bool { return c.Name == p || strings.HasPrefix(c.Name, p+".") })
	})
}
