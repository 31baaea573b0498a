package tensor

// What a plan is decided by, as choices. Package runtime/tune measures them.

import (
	"fmt"
	"slices"
	"time"

	"github.com/concord-compute/concord/kernels/expr"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/choice"
)

// Efforts are in the time in which the device adds two numbers in registers, in all its threads. The defaults are those
// of a CPU, measured with tensors of 4 KiB to 64 MiB.
var (
	taskEffort = cost("task", "effort of another task of a plan", 10000, decades(500, 5e8)...)
	nearEffort = cost("move.1m", "effort of reading or storing an element of a tensor of 1 MiB or less", 2, moves...)
	sideEffort = cost("move.4m", "the same of 4 MiB or less", 3, moves...)
	farEffort  = cost("move.16m", "the same of 16 MiB or less", 5, moves...)
	mostEffort = cost("move.more", "the same of more", 12, moves...)
	functions  = cost("functions", "efforts of functions, in percent of those that package expr has", 100,
		10, 14, 20, 28, 40, 50, 70, 100, 140, 200, 280, 400, 560, 800, 1100, 1600, 2200, 3200)
	// manyTimes is how often a number may be computed again before it is stored instead, and how many elements make it
	// worthwhile to read them once.
	manyTimes = cost("many", "times that a number is computed again before it is stored instead, and elements that are "+
		"worth a kernel of their own", 4096, doubled(256, 1<<22)...)
)

// moves are values of efforts, each at most twice the one before.
var moves = []int{1, 2, 3, 5, 8, 12, 20, 30, 50, 80, 120, 200}

// decades returns 1, 2 and 5 times powers of ten, from one number to another.
func decades(from, to int) (list []int) {
	for ten := 1; ten <= to; ten *= 10 {
		for _, n := range []int{ten, 2 * ten, 5 * ten} {
			if n >= from && n <= to {
				list = append(list, n)
			}
		}
	}
	return list
}

// doubled returns powers of two, from one number to another.
func doubled(from, to int) (list []int) {
	for n := from; n <= to; n *= 2 {
		list = append(list, n)
	}
	return list
}

// cost registers a choice of the planner. What is stored decides which kernels reduce, and so the order of sums.
func cost(name, doc string, usual int, values ...int) *choice.Choice {
	return choice.New(choice.Choice{Name: "tensor." + name, Doc: doc,
		Why:     "chains and reductions of all sizes were computed both ways on a processor with two threads",
		Default: usual, Values: values, Rounds: true})
}

// Costs are what the plans for a device are decided by. All but Functions and Many are efforts: 1 is the time in which
// the device adds two numbers in registers. Where a device computes in groups of items nothing is stored to be visited
// again, and only Functions and Many count.
type Costs struct {
	Task      int    `json:"task"`      // another task: a launch
	Move      [4]int `json:"move"`      // to read or store an element of a tensor of up to 1 MiB, 4, 16, and of more
	Functions int    `json:"functions"` // of functions of elements, in percent of those of package expr
	Many      int    `json:"many"`      // elements that are worth a kernel of their own
	// Measured is the time of the device's table (runtime/choice), which has them with all else that was tuned. It is zero
	// if the table has none of them, so that they are the defaults.
	Measured time.Time `json:"measured,omitzero"`
}

// costsOf returns the costs of a device, all of one moment.
func costsOf(d *runtime.Device) Costs {
	s, t := d.Choices().InUse()
	c := Costs{Task: s.Of(taskEffort), Functions: s.Of(functions), Many: s.Of(manyTimes),
		Move: [4]int{s.Of(nearEffort), s.Of(sideEffort), s.Of(farEffort), s.Of(mostEffort)}}
	own := []*choice.Choice{taskEffort, nearEffort, sideEffort, farEffort, mostEffort, functions, manyTimes}
	if t != nil && slices.ContainsFunc(own, func(x *choice.Choice) bool {
		_, measured := t.Values[x.Name]
		return measured
	}) {
		c.Measured = t.Made
	}
	return c
}

// String returns the costs as text, and whether they were measured: "task 10000, element 2 up to 1 MiB, 3 up to 4 MiB,
// 5 up to 16 MiB, else 12, functions 100 %, kernel of its own from 4096 elements (defaults)".
func (c Costs) String() string {
	from := "defaults"
	if !c.Measured.IsZero() {
		from = "from a table of " + c.Measured.Format(time.DateOnly)
	}
	return fmt.Sprintf("task %d, element %d up to 1 MiB, %d up to 4 MiB, %d up to 16 MiB, else %d, functions %d %%, "+
		"kernel of its own from %d elements (%s)", c.Task, c.Move[0], c.Move[1], c.Move[2], c.Move[3], c.Functions,
		c.Many, from)
}

// moving returns the effort of reading or storing an element of a tensor of so many bytes, which lie in caches or not.
func (c *Costs) moving(bytes int) int {
	switch {
	case bytes <= 1<<20:
		return c.Move[0]
	case bytes <= 4<<20:
		return c.Move[1]
	case bytes <= 16<<20:
		return c.Move[2]
	}
	return c.Move[3]
}

// effort returns that of an operation.
func (c *Costs) effort(op expr.Op) int {
	if !function(op) {
		return op.Effort()
	}
	return max(op.Effort()*c.Functions/100, 1)
}

// expensive reports whether an operation is a function that takes longer than an addition.
func (c *Costs) expensive(op expr.Op) bool { return function(op) && c.effort(op) > 1 }
