package mempool_test

import (
	"fmt"
	"log"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/runtime/mempool"
)

// heap is a source that only counts its allocations. Every driver.Device is a source.
type heap struct{ allocations uint64 }

func (h *heap) Alloc(n int64, kind driver.MemoryKind) (driver.Memory, error) {
	h.allocations++
	return driver.Memory{Handle: h.allocations, Size: n, Kind: kind}, nil
}

func (h *heap) Free(driver.Memory) error { return nil }

// The second request for a size does not reach the driver.
func ExamplePool() {
	pool := mempool.New(&heap{}, mempool.Options{Mode: mempool.Whole})
	for range 10 {
		block, err := pool.Get(1<<20, driver.OnDevice, nil)
		if err != nil {
			log.Fatal(err)
		}
		if err := pool.Put(block.ID, nil, 0); err != nil { // nil: no queued work uses it
			log.Fatal(err)
		}
	}
	s := pool.Stats()
	fmt.Println(s.Allocations, "allocations,", s.DriverAllocs, "by the driver,", s.Cached, "bytes kept")
	if err := pool.Close(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 10 allocations, 1 by the driver, 1048576 bytes kept
}

// A program's recorded use of memory can be replayed with other options, without a device.
func ExampleTrace_Replay() {
	recorder := mempool.NewRecorder(0)
	pool := mempool.New(&heap{}, mempool.Options{Mode: mempool.PassThrough})
	pool.Record(recorder, "npu:0")
	for range 5 {
		block, err := pool.Get(4096, driver.OnDevice, nil)
		if err != nil {
			log.Fatal(err)
		}
		if err := pool.Put(block.ID, nil, 0); err != nil {
			log.Fatal(err)
		}
	}
	before := pool.Stats()
	after, err := recorder.Trace().Replay(mempool.Options{Mode: mempool.Exact}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("calls of the driver:", before.DriverAllocs, "without a pool,", after.Stats.DriverAllocs, "with one")
	// Output:
	// calls of the driver: 5 without a pool, 1 with one
}
