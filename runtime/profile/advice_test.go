package profile

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// repeated returns n events of a stream, each every ns apart.
func repeated(n int, every int64, e Event) (list []Event) {
	length := e.End - e.Start
	for i := range n {
		e.Start = int64(i) * every
		e.End = e.Start + length
		list = append(list, e)
	}
	return list
}

func TestAdvice(t *testing.T) {
	const us, ms = 1000, 1000000
	roofs := map[string]Roof{"cuda:0": {GFLOPS: 1000, MemoryGBs: 100}}
	launch := func(ns int64, flops, bytes float64) Event {
		return Event{Kind: Launch, Name: "k", Device: "cuda:0", End: ns, Flops: flops, Bytes: bytes}
	}
	for name, c := range map[string]struct {
		events []Event
		want   []string // begin or part of each sentence
	}{
		"nothing":          {nil, nil},
		"one launch, good": {repeated(1, 0, launch(ms, 1, 5e7)), nil},
		"unknown work": {repeated(3, ms, launch(ms, 0, 0)), []string{"cuda:0: k takes 100 % of the work, and how " +
			"much it reads, writes and computes is unknown"}},
		"the memory's rate": {repeated(3, ms, launch(ms, 1, 9e7)),
			[]string{"k takes 100 % of the work at 90 % of the memory's rate"}},
		"arithmetic":    {repeated(3, ms, launch(ms, 0.8e9, 1)), []string{"at 80 % of the device's arithmetic"}},
		"far from both": {repeated(3, ms, launch(ms, 1e8, 1e7)), []string{"at 10 % of what the device can do"}},
		"short launches": {repeated(1000, 20*us, launch(5*us, 1, 3e5)), []string{"idle for 75 % of the time between " +
			"1000 launches that take less than 20µs each"}},
		"waits": {
			append(repeated(100, ms, launch(ms/2, 1, 2.5e7)),
				repeated(100, ms, Event{Kind: Wait, Name: "sync", Device: "cuda:0",
					End: ms})...), []string{"the host waited 100 times for 100 operations"}},
		"long gaps, few waits": {
			append(repeated(100, ms, launch(ms/2, 1, 2.5e7)),
				repeated(2, ms, Event{Kind: Wait, Name: "sync", Device: "cuda:0", End: ms})...), nil},
		"compiles": {
			append(repeated(1, 0, launch(ms, 1, 5e7)), Event{Kind: Compile, Name: "k.cl", Device: "cuda:0", End: 200 * ms}),
			[]string{"getting programs took 200ms, the device's work 1ms"}},
		"short compiles": {
			append(repeated(1, 0, launch(ms, 1, 5e7)), Event{Kind: Compile, Name: "k.cl", Device: "cuda:0", End: 90 * ms}), nil},
		"copies": {
			append(repeated(1, 0, launch(ms, 1, 5e7)), Event{Kind: Copy, Name: "host to device", Device: "cuda:0", Start: ms,
				End: 3 * ms, Bytes: 1}), []string{"copies between host and device took 2ms, kernels 1ms"}},
		"a small kernel": {
			append(repeated(1, 0, launch(ms, 1, 5e7)), Event{Kind: Launch, Name: "small", Device: "cuda:0", Start: ms,
				End: ms + ms/10}), nil},
		"failed launches": {
			append(repeated(2, 50*ms, launch(ms, 1, 5e7)),
				repeated(100, 1, Event{Kind: Launch, Name: "f", Device: "cuda:0", Start: ms, End: ms,
					Err: errors.New("refused")})...), nil},
		"no roof": {
			repeated(3, ms, Event{Kind: Launch, Name: "k", Device: "cpu:0", End: ms, Flops: 1, Bytes: 1}), nil},
	} {
		s := Summarize(Trace{Events: c.events, Roofs: roofs})
		if !assert.Len(t, s.Advice, len(c.want), "%s: %q", name, s.Advice) {
			continue
		}
		for i, want := range c.want {
			assert.Contains(t, s.Advice[i], want, name)
			assert.Contains(t, fmt.Sprint(s), s.Advice[i], name)
		}
	}
}
