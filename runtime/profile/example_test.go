package profile_test

import (
	"fmt"
	"io"
	"log"

	"github.com/concord-compute/concord/runtime/profile"
)

// A kernel of 40 registers on an A100, of which none is needed here.
func ExampleOccupancy() {
	l, err := profile.LimitsOf("sm_80", 0)
	if err != nil {
		log.Fatal(err)
	}
	r := profile.Occupancy(l, profile.Request{Registers: 40}, 256)
	fmt.Println(r)
	fmt.Println(r.Advice())
	// Output:
	// 6 groups of 256 items, 48 of 64 warps (75 %), limited by registers
	// use fewer registers: keep fewer values at a time, or allow the compiler fewer
}

// A program that measures its own work: what took the time, and a trace for ui.perfetto.dev.
func ExampleSummarize() {
	var r profile.Recording
	r.Observe(profile.Event{Kind: profile.Launch, Name: "saxpy", Device: "cpu:0", Stream: 1, Start: 0, End: 8000,
		Flops: 20000, Bytes: 120000})
	r.Observe(profile.Event{Kind: profile.Launch, Name: "mine", Device: "cpu:0", Stream: 1, Start: 8000, End: 10000})
	events, dropped := r.Events()
	s := profile.Summarize(profile.Trace{Events: events, Dropped: dropped, Roofs: map[string]profile.Roof{
		"cpu:0": {MemoryGBs: 20, GFLOPS: 100}}})
	for _, l := range s.Lines {
		fmt.Println(l.Name, l.Total, l.GBs.Known(), l.Bound)
	}
	if err := profile.WriteTrace(io.Discard, profile.Trace{Events: events, Dropped: dropped}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// saxpy 8µs true memory
	// mine 2µs false
}
