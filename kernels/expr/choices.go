package expr

import (
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/choice"
)

// The choices of maps with reductions on machines for block programs. A host has values of choices if it has the
// method Choose; others use the defaults.
var (
	pieceElements = sized("piece", "elements that are computed before they are combined", "so many stay in a cache",
		Kept, 1<<14, 1<<15, 1<<16, 1<<17)
	shareElements = sized("share", "elements that are worth a thread", "they take longer than to wake it",
		1<<15, 1<<13, 1<<14, 1<<15, 1<<16, 1<<17)
	mostPieces = sized("pieces", "pieces of columns that are combined to one partial result at most",
		"their results stay in a cache", 64, 16, 32, 64, 128, 256)
	wideColumns = sized("wide", "columns that are reduced side by side at most", "their sums stay in a cache",
		8192, 1024, 2048, 4096, 8192)
	narrowColumns = sized("narrow", "columns up to which several rows of them are combined as one",
		"a call for each short row would be slow", 512, 64, 128, 256, 512, 1024)
	partsMost = sized("parts", "parts of columns at most", "there are enough for the threads", 256, 64, 128, 256, 512)
	leastRows = sized("least", "rows of such a part at least, of elements of 32 bits and more",
		"a part's results are few beside its elements", 32, 8, 16, 32, 64, 128)
	locatingParts = sized("locating", "parts of columns at most in which places of extremes are looked for",
		"what is found in a part costs a copy", 16, 4, 8, 16, 32)
)

func sized(name, doc, why string, usual int, values ...int) *choice.Choice {
	return choice.New(choice.Choice{Name: "cpu.reduce." + name, Doc: doc, Why: why, Default: usual, Values: values,
		Rounds: true})
}

// chosen returns the value of a choice for a launch.
func chosen(c *kernels.Call, x *choice.Choice) int {
	if h, ok := c.Host.(interface{ Choose(x *choice.Choice) int }); ok {
		return h.Choose(x)
	}
	return x.Default
}
