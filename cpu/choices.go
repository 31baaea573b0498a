package cpu

// The numbers that were chosen by measuring, as choices: those of threads, memory, reductions and searches. The other
// files choices_*.go have those of products and of convolutions. Shares of caches are in 64ths, so that halves, eighths
// and sixteenths are exact.

import (
	"fmt"

	"github.com/klauspost/cpuid/v2"

	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/runtime/driver"
)

var _ driver.Tunable = (*device)(nil)

// speed registers a choice that changes no bit of any result.
func speed(name, doc, why string, usual int, values ...int) *choice.Choice {
	return choice.New(choice.Choice{Name: "cpu." + name, Doc: doc, Why: why, Default: usual, Values: values})
}

// order registers a choice on which the order of roundings depends.
func order(name, doc, why string, usual int, values ...int) *choice.Choice {
	return choice.New(choice.Choice{Name: "cpu." + name, Doc: doc, Why: why, Default: usual, Values: values, Rounds: true})
}

// Choices implements driver.Tunable. The reference has none.
func (d *device) Choices() []*choice.Choice {
	if d.reference {
		return nil
	}
	return choice.Of("cpu")
}

// Choose implements driver.Tunable. A launch that runs goes on with the values with which it began.
func (d *device) Choose(s *choice.Set) {
	if !d.reference {
		d.workers.chosen.Store(s)
	}
}

// TunedFor implements driver.Tunable.
func (d *device) TunedFor() string {
	c, kernels := &cpuid.CPU, goKernels
	if d.simd != nil {
		kernels = d.simd.name
	}
	if d.reference {
		kernels = "reference"
	}
	vendor := cpuVendor()
	if vendor == "" {
		vendor = cpuName()
	}
	l2, l3 := cacheSizes()
	return fmt.Sprintf("%s family %d model %d, %s, L2 %d KiB, L3 %d KiB, %d threads", vendor, c.Family, c.Model, kernels,
		l2>>10, l3>>10, d.threads)
}

// choose returns the value of a choice for work that begins now.
func (w *workers) choose(c *choice.Choice) int { return w.chosen.Load().Of(c) }

// Choose returns the value of a choice for this launch. It is for the families of the catalog, which know a launch
// alone.
func (c *call) Choose(x *choice.Choice) int { return c.chosen.Of(x) }

// share returns the part of a cache that a choice names.
func (c *call) share(x *choice.Choice, cache int) int { return cache * c.chosen.Of(x) / 64 }

// Threads.
var (
	threadsPayNs = order("threads.pay", "nanoseconds of work on one thread from which others help",
		"starting a thread takes about 20 µs", 40000, 10000, 20000, 40000, 80000, 160000)
	guessOperations = order("threads.operations",
		"operations of a nanosecond, by which the time of work is estimated",
		"products of two vector units, which wait for memory at times", 100, 25, 50, 100, 200, 400)
	guessBytes = order("threads.bytes", "bytes that a nanosecond moves, by which the time of work is estimated",
		"between the rates of the second-level cache and of memory", 25, 5, 10, 25, 50, 100)
	threadRanges = order("threads.ranges", "ranges into which work is divided for each thread",
		"others take over ranges of a thread that is slow, and each range costs a call", 4, 1, 2, 4, 8, 16)
	threadParts = order("threads.parts", "most ranges for each thread where a kernel states the smallest range",
		"threads end together, and read memory that lies close together", 16, 1, 2, 4, 8, 16, 32)
	rangeLeast = speed("threads.least", "bytes of the smallest range of work that moves memory, in KiB",
		"the distribution of ranges costs little beside it", 16, 4, 8, 16, 32, 64)
	rangeMost = speed("threads.most", "bytes of the largest range of work that moves memory, in KiB",
		"all threads end at about the same time", 4096, 1024, 2048, 4096, 8192, 16384)
	goGrain = speed("threads.grain", "elements of the smallest range of kernels in Go",
		"from so many on another goroutine saves time", 4096, 1024, 2048, 4096, 8192, 16384)
	lingerMicros = speed("threads.linger",
		"µs that a helper without work polls, and a launch for the end of its helpers",
		"waking a thread takes about as long on a virtual machine whose other processor is idle", 200, 0, 50, 100, 200,
		400, 800)
	pollTurns = speed("threads.polls", "loads of a counter before the next look at the clock",
		"they take about a µs", 500, 100, 250, 500, 1000, 2000)
	spinTurns = speed("threads.spin", "loads of a counter before a thread that waits for another one yields",
		"most waits end by then", 50, 0, 50, 200, 1000)
	yieldTurns = speed("threads.yield", "turns after which a thread that waits for another one sleeps",
		"the other one seems to have been stopped", 2000, 500, 1000, 2000, 4000, 8000)
	sleepMicros = speed("threads.sleep", "µs for which a thread that waits for another one sleeps",
		"short beside the time that a system gives another thread", 20, 5, 10, 20, 50, 100)
	aloneNs = speed("threads.alone", "nanoseconds that a compiled kernel runs on one thread before others are woken",
		"waking one takes about as long", 15000, 5000, 10000, 15000, 30000, 60000)
	helpNs = speed("threads.help",
		"nanoseconds that a compiled kernel is expected to take if others are woken at once",
		"a little more than it runs alone otherwise", 25000, 10000, 15000, 25000, 50000, 100000)
)

// Copies and results in memory.
var (
	pastCaches = speed("copy.past", "results that are stored past the caches, in 64ths of the third-level cache",
		"what exceeds it is not found there again", 64, 16, 32, 64, 128, 256)
	inlineKiB = speed("copy.inline", "largest copy and fill that an idle stream does at once, in KiB",
		"it is faster than waking a worker", 64, 16, 32, 64, 128, 256)
	stageKiB = speed("copy.stage", "largest upload to a busy stream that is copied to other memory, in KiB",
		"a second copy of so much costs less than to wait", 256, 64, 128, 256, 512, 1024)
	turnBand = speed("transpose.band", "bytes of the columns that a band of a transposition has, rounded up to "+
		"tiles of 256", "one tile of the vector functions", 256, 256, 512, 1024)
	turnFew = speed("transpose.few", "bands of rows, of which a band has all if there are no more",
		"the tiles are along the rows then", 3, 1, 2, 3, 4)
	turnRow = speed("transpose.row", "bytes of the rows that a part of a band has at least", "a page of memory",
		4096, 1024, 2048, 4096, 8192, 16384)
	turnRanges = speed("transpose.ranges", "parts of bands for each thread", "bands alone may be too few", 8, 1, 2,
		4, 8, 16)
	turnNear = speed("transpose.near",
		"matrices whose results are fetched before they are stored, in 64ths of the second-level cache, from that size on",
		"smaller ones are found there", 256, 64, 128, 256, 512, 1024)
	rowPast = speed("rows.past", "bytes of a row from which normalized rows may be stored past the caches",
		"shorter ones leave lines incomplete", 1024, 256, 512, 1024, 2048, 4096)
)

// Selection and searches.
var (
	topkPart = speed("topk.part", "elements of the smallest part of a row that threads divide",
		"from so many on another thread saves time", 1<<16, 1<<14, 1<<15, 1<<16, 1<<17, 1<<18)
	topkParts = speed("topk.parts", "parts of a row from which threads divide it", "one for each of some threads", 4,
		2, 4, 8, 16)
	topkMost = speed("topk.most", "elements to be found up to which threads divide a row",
		"those of all parts are searched once more", 1024, 64, 256, 1024, 4096)
	topkNear = speed("topk.near", "largest row whose successor is fetched while it is searched, in KiB",
		"the processor foresees longer ones itself", 16, 0, 4, 8, 16, 32, 64)
	topkFirst = speed("topk.first",
		"four registers of a row in which a limit is found before the row is searched",
		"a lower limit leaves fewer elements to look at, a longer beginning is read twice", 128, 32, 64, 128, 256, 512)
	nearFetch = speed("nearest.fetch",
		"bytes of each listed vector that are fetched while the one before is computed",
		"they lie anywhere, so that nothing else fetches them", 1024, 64, 256, 512, 1024, 2048, 4096)
	nearMany = order("nearest.many",
		"queries for which distances are computed in tiles, in percent of the floats of a register, if there are more",
		"half of the lanes are in use then", 50, 0, 25, 50, 100, 200)
	nearBlock = speed("nearest.block", "distances of a block of vectors from all queries, in KiB",
		"they stay in the second-level cache beside the vectors", 256, 64, 128, 256, 512, 1024)
)

// The forms in Go.
var (
	goDepth = order("go.depth", "elements of rows that products in Go multiply at a time",
		"two panels stay in the caches", 512, 128, 256, 512, 1024)
	goRows = speed("go.rows", "rows of a tile of products in Go", "panels of cpu.go.depth stay in the caches", 32, 8,
		16, 32, 64)
	goCols = speed("go.cols", "columns of a tile of products in Go", "panels of cpu.go.depth stay in the caches", 64,
		16, 32, 64, 128)
	goSums = speed("go.sums", "sums of columns that products in Go compute at a time",
		"they stay in the first-level cache", 1024, 256, 512, 1024, 4096)
	goTile = speed("go.tile", "rows and columns of a tile that is transposed in Go",
		"both sides stay in the first-level cache", 32, 8, 16, 32, 64)
	goShares = speed("go.segments", "ranges of segments for each thread", "segments are of unequal sizes", 8, 2, 4,
		8, 16)
)
