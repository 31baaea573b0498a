package ann

// The numbers of searches that were chosen by measuring, as choices of the index's device, or of cpu:0 for codes. Those
// on which depends what is found are no choices: the number of lists, how many of them, of their codes and of a graph's
// vectors a search compares, and from how few vectors on it compares all, which options or the documentation have.

import "github.com/concord-compute/concord/runtime/choice"

// speed registers a choice that changes no bit of any result.
func speed(name, doc, why string, usual int, values ...int) *choice.Choice {
	return choice.New(choice.Choice{Name: "ann." + name, Doc: doc, Why: why, Default: usual, Values: values})
}

// order registers a choice on which the order of roundings may depend: kernels may divide sums by the numbers of
// queries and vectors of a launch.
func order(name, doc, why string, usual int, values ...int) *choice.Choice {
	return choice.New(choice.Choice{Name: "ann." + name, Doc: doc, Why: why, Default: usual, Values: values, Rounds: true})
}

var (
	rankTogether = speed("rank.together", "listed rows that a thread compares in one call",
		"a call costs little beside it, and threads end together", 2048, 256, 512, 1024, 2048, 4096, 8192)
	rankAlone = speed("rank.alone", "listed rows for each thread that compares them", "starting a thread takes a while",
		16384, 2048, 4096, 8192, 16384, 32768, 65536)
	rankFunction = speed("rank.function", "rows for each thread that compares them by a function of the program",
		"such a function takes longer than a vector instruction", 1024, 64, 256, 1024, 4096)
	codesRun = speed("codes.run", "blocks of codes that are compared in one call, at most",
		"the bound is that of the last call", 128, 16, 32, 64, 128)
	codesFirst = speed("codes.first",
		"blocks of codes that are compared in one call, at least, and while too few are found for a bound",
		"the sooner there is a bound, the fewer vectors pass", 4, 1, 2, 4, 8, 16)
	graphChecked = speed("graph.checked", "chosen vectors that a candidate for a link is compared with at a time",
		"mostly one of the first ones decides", 8, 2, 4, 8, 16, 32)
	rowsSkipped = order("rows.skipped",
		"rows up to which a filter is applied by finding so many more, instead of copying those that it admits",
		"finding some more costs less than a copy", 64, 0, 16, 64, 256)
	rowsGathered = order("rows.gathered", "rows that a filter admits which are copied and searched at a time, in MiB",
		"a launch for fewer takes hardly less time", 16, 1, 4, 16, 64)
	rowsStreamed = order("rows.streamed", "rows of a chunk that goes through the device, in MiB",
		"a launch for fewer takes hardly less time", 32, 8, 16, 32, 64, 128)
	queriesTogether = order("queries.together", "queries of a launch at most", "more of them share nothing more", 256, 32,
		64, 128, 256, 512, 1024)
)
