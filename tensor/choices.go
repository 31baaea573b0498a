package tensor

// What the planner's estimates were measured with, as choices.

import "github.com/concord-compute/concord/runtime/choice"

// Efforts are in the time in which the CPU adds two numbers in registers and all its threads, measured with tensors of
// 4 KiB to 64 MiB.
var (
	taskEffort = cost("task", "effort of another task of a plan", 10000, 1000, 3000, 10000, 30000, 100000)
	nearEffort = cost("move.1m", "effort of reading or storing an element of a tensor of 1 MiB or less", 2, 1, 2, 3, 4)
	sideEffort = cost("move.4m", "the same of 4 MiB or less", 3, 1, 2, 3, 5, 8)
	farEffort  = cost("move.16m", "the same of 16 MiB or less", 5, 2, 3, 5, 8, 12)
	mostEffort = cost("move.more", "the same of more", 12, 5, 8, 12, 20, 40)
	// manyTimes is how often a number may be computed again before it is stored instead, and how many elements make it
	// worthwhile to read them once.
	manyTimes = cost("many", "times that a number is computed again before it is stored instead, and elements that are "+
		"worth a kernel of their own", 4096, 1024, 2048, 4096, 8192, 16384)
)

// cost registers a choice of the planner. What is stored decides which kernels reduce, and so the order of sums.
func cost(name, doc string, usual int, values ...int) *choice.Choice {
	return choice.New(choice.Choice{Name: "tensor." + name, Doc: doc,
		Why:     "chains and reductions of all sizes were computed both ways on a processor with two threads",
		Default: usual, Values: values, Rounds: true})
}

// prices are the values of these choices on a device.
type prices struct {
	task, many int
	move       [4]int
}

// prices returns those of the device on which a graph is computed.
func (g *graph) prices() prices {
	if len(g.nodes) == 0 {
		return prices{}
	}
	s := g.nodes[0].scope.engine.device.Choices()
	return prices{task: s.Of(taskEffort), many: s.Of(manyTimes),
		move: [4]int{s.Of(nearEffort), s.Of(sideEffort), s.Of(farEffort), s.Of(mostEffort)}}
}

// moving returns the effort of reading or storing an element of a tensor of so many bytes, which lie in caches or not.
func (p *prices) moving(bytes int) int {
	switch {
	case bytes <= 1<<20:
		return p.move[0]
	case bytes <= 4<<20:
		return p.move[1]
	case bytes <= 16<<20:
		return p.move[2]
	}
	return p.move[3]
}
