package main

// What runs at the speed of memory, beside loops by hand.

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/driver"
)

// prepared is a launch with the memory of its buffers.
type prepared struct {
	run     func() error
	buffers [][]byte
	name    string // of the implementation
	free    func()
}

// prepare makes a launch of a kernel. Arguments are int for a buffer of so many
// bytes, uint32, uint64 and float32.
func (b *bench) prepare(family, kernel string, args ...any) (*prepared, error) {
	u, err := kernels.Unit(family, nil)
	if err != nil {
		return nil, err
	}
	k, ok := b.device.(driver.Natives).Native(u, kernel)
	if !ok {
		return nil, fmt.Errorf("the device has no %s of its own", kernel)
	}
	l := &driver.Launch{Kernel: k, Dim: 3, Global: [3]int{1, 1, 1}, Local: [3]int{1, 1, 1}}
	p := &prepared{name: k.Info().Implementation, free: func() {}}
	for _, a := range args {
		switch a := a.(type) {
		case int:
			m, err := b.device.Alloc(int64(a), driver.OnDevice)
			if err != nil {
				p.free()
				return nil, err
			}
			before := p.free
			p.free = func() { before(); _ = b.device.Free(m) } // the process ends soon
			data, _ := b.device.(driver.HostVisible).HostBytes(m)
			p.buffers = append(p.buffers, data)
			l.Args = append(l.Args, driver.Arg{Kind: driver.ArgMemory, Memory: m})
		case uint32:
			value(l, binary.NativeEndian.AppendUint32(nil, a))
		case uint64:
			value(l, binary.NativeEndian.AppendUint64(nil, a))
		case float32:
			value(l, binary.NativeEndian.AppendUint32(nil, math.Float32bits(a)))
		}
	}
	run, release, err := cpu.Prepare(b.device, l)
	if err != nil {
		p.free()
		return nil, err
	}
	before := p.free
	p.run, p.free = run, func() { release(); before() }
	return p, nil
}

// beside measures a kernel and a loop in turn. bytes are those read and written.
func (b *bench) beside(what string, p *prepared, bytes int, loop func()) error {
	theirs := func() error { loop(); return nil }
	if !haveLoops {
		theirs = nil
	}
	c, err := inTurn(3*time.Second, p.run, theirs)
	if err != nil {
		return err
	}
	fmt.Printf("%s %-24s %6.1f GB/s, by hand %6.1f, ratio %.3f (%.3f to %.3f)\n", p.name, what,
		float64(bytes)/c.ours, float64(bytes)/c.theirs, c.ratio, c.low, c.high)
	return nil
}

// streamFloats is the length of arrays: 64 M.
const streamFloats = 1 << 26

func (b *bench) streams() error {
	const n, size = streamFloats, 4 * streamFloats
	p, err := b.prepare("arith", "add", size, size, size, uint64(n))
	if err != nil {
		return err
	}
	for _, x := range p.buffers {
		randomize(x, false)
	}
	err = b.beside("add 64M", p, 3*size, func() { addLoop(b.threads, p.buffers[0], p.buffers[1], p.buffers[2]) })
	p.free()
	if err != nil {
		return err
	}
	p, err = b.prepare("reduce", "reduce_sum", size, 4, uint32(1), uint32(n), uint32(1))
	if err != nil {
		return err
	}
	randomize(p.buffers[0], false)
	err = b.beside("sum 64M", p, size, func() { readLoop(b.threads, p.buffers[0]) })
	p.free()
	if err != nil {
		return err
	}
	p, err = b.prepare("softmax", "softmax", size/4, size/4, uint32(n/4/1024), uint32(1024))
	if err != nil {
		return err
	}
	randomize(p.buffers[0], false)
	err = b.beside("softmax 16k rows of 1024", p, size/2, func() { readLoop(b.threads, p.buffers[0]); readLoop(b.threads, p.buffers[0]) })
	p.free()
	return err
}

// distances is L2 of some queries over a million vectors of 128, or what memory is
// read for that.
func (b *bench) distances() error {
	const vectors, dim = 1_000_000, 128
	for _, kind := range []struct {
		kernel string
		size   int
	}{{"l2_distance_fp32", 4}, {"l2_distance_fp16", 2}, {"l2_distance_int8", 1}} {
		for _, queries := range []int{1, 16, 256} {
			p, err := b.prepare("l2_distance", kind.kernel, queries*dim*kind.size, vectors*dim*kind.size, 4*queries*vectors,
				uint32(queries), uint32(vectors), uint32(dim))
			if err != nil {
				return err
			}
			for i, x := range p.buffers[:2] {
				if kind.size == 2 { // random bits would be NaN
					for j := 0; j < len(x); j += 2 {
						binary.NativeEndian.PutUint16(x[j:], uint16(0x3800+(j*7+i)&0x3ff))
					}
				} else {
					randomize(x, false)
				}
			}
			err = b.beside(fmt.Sprintf("%s × %d", kind.kernel, queries), p, vectors*dim*kind.size,
				func() { readLoop(b.threads, p.buffers[1]) })
			p.free()
			if err != nil {
				return err
			}
		}
	}
	return nil
}
