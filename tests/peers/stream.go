package main

// Kernels that run at the speed of memory, compared with hand-written loops and PyTorch.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/concord-compute/concord/cpu"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// prepared is a launch with the memory of its buffers.
type prepared struct {
	run     func() error
	buffers [][]byte
	memory  []driver.Memory // of the buffers
	name    string          // of the implementation
	free    func()
}

// errNotHere is the error for a kernel that the catalog or the device does not have.
var errNotHere = errors.New("not here")

// prepare makes a launch of a kernel. Arguments are an int for a new buffer of that many bytes,
// driver.Memory for an existing one, uint32, uint64, float32 and float64.
func (b *bench) prepare(family string, defines []source.Define, kernel string, args ...any) (*prepared, error) {
	if _, ok := kernels.Find(family); !ok {
		return nil, fmt.Errorf("the catalog has no %s: %w", family, errNotHere)
	}
	u, err := kernels.Unit(family, &source.Features{FP64: true}, defines...)
	if err != nil {
		return nil, err
	}
	k, ok := b.device.(driver.Natives).Native(u, kernel)
	if !ok {
		return nil, fmt.Errorf("the device has no %s of its own: %w", kernel, errNotHere)
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
			b.pass(p, l, m)
		case driver.Memory:
			b.pass(p, l, a)
		case uint32:
			value(l, binary.NativeEndian.AppendUint32(nil, a))
		case uint64:
			value(l, binary.NativeEndian.AppendUint64(nil, a))
		case float32:
			value(l, binary.NativeEndian.AppendUint32(nil, math.Float32bits(a)))
		case float64:
			value(l, binary.NativeEndian.AppendUint64(nil, math.Float64bits(a)))
		default:
			return nil, fmt.Errorf("an argument of type %T", a)
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

// pass adds a buffer as the next argument.
func (b *bench) pass(p *prepared, l *driver.Launch, m driver.Memory) {
	data, _ := b.device.(driver.HostVisible).HostBytes(m)
	p.buffers, p.memory = append(p.buffers, data), append(p.memory, m)
	l.Args = append(l.Args, driver.Arg{Kind: driver.ArgMemory, Memory: m})
}

// value appends a value argument at a multiple of its size.
func value(l *driver.Launch, bits []byte) {
	for len(l.Data)%len(bits) != 0 {
		l.Data = append(l.Data, 0)
	}
	l.Args = append(l.Args, driver.Arg{Kind: driver.ArgValue, Offset: len(l.Data), Size: len(bits)})
	l.Data = append(l.Data, bits...)
}

// absent reports a kernel that is missing, and returns other errors.
func (b *bench) absent(what string, err error) error {
	if errors.Is(err, errNotHere) {
		b.say("%-7s %-30s %v", b.suite, what, err)
		return nil
	}
	return err
}

// streamFloats is the length of arrays: 64 M.
const streamFloats = 1 << 26

// streamRow is one kernel over the arrays.
type streamRow struct {
	what, family, kernel string
	defines              []source.Define
	bytes                int // read and written
	args                 []any
	loop                 func(b *bench, buffers [][]byte) // nil: no hand-written loop
	call                 string                           // of peers.py; "": none
	with                 map[string]any                   // its arguments, besides n
}

func (b *bench) streams() error {
	const n, size = streamFloats, 4 * streamFloats
	for _, r := range []streamRow{
		{"add", "arith", "add", nil, 3 * size, []any{size, size, size, uint64(n)},
			func(b *bench, x [][]byte) { addLoop(b.threads, x[0], x[1], x[2]) }, "add", nil},
		{"copy", "copy", "copy", nil, 2 * size, []any{size, size, uint64(n)},
			func(b *bench, x [][]byte) { copyLoop(b.threads, x[0], x[1]) }, "copy", nil},
		{"cast f32 to f16", "cast", "cast", defines("FROM", "f32", "TO", "f16"), size + size/2,
			[]any{size, size / 2, uint64(n)},
			func(b *bench, x [][]byte) { narrowLoop(b.threads, x[0], x[1]) }, "cast", map[string]any{"to": "float16"}},
		{"sum", "reduce", "reduce_sum", nil, size, []any{size, 4, uint32(1), uint32(n), uint32(1)},
			func(b *bench, x [][]byte) { readLoop(b.threads, x[0]) }, "sum", nil},
		{"saxpy", "saxpy", "saxpy", nil, 3 * size, []any{float32(0), size, size, uint64(n)},
			func(b *bench, x [][]byte) { saxpyLoop(b.threads, 0, x[0], x[1]) }, "saxpy", nil},
	} {
		if err := b.stream(&r); err != nil {
			return fmt.Errorf("%s: %w", r.what, err)
		}
	}
	return nil
}

func (b *bench) stream(r *streamRow) error {
	what := r.what + " 64M"
	if !b.wanted(what) {
		return nil
	}
	p, err := b.prepare(r.family, r.defines, r.kernel, r.args...)
	if err != nil {
		return b.absent(r.what, err)
	}
	defer p.free()
	for _, x := range p.buffers {
		randomize(x, false)
	}
	var others []contender
	if r.loop != nil {
		others = append(others, b.loop(func() { r.loop(b, p.buffers) }))
	}
	if r.call != "" {
		args := map[string]any{"n": streamFloats}
		for k, v := range r.with {
			args[k] = v
		}
		c, err := b.peer("torch", args, r.call)
		if err != nil {
			return err
		}
		others = append(others, c)
	}
	return b.compare(subject{what: what, work: float64(r.bytes), unit: gbps, name: p.name, run: p.run}, others...)
}

// softmax measures rows of 1024. PyTorch writes its result to existing memory, or to memory that it
// allocates at each call, as torch.softmax(x, 1) does.
func (b *bench) softmax() error {
	const n = 1024
	for _, rows := range []int{128, 1024, 16384, 65536} {
		what := fmt.Sprintf("%d rows of 1024", rows)
		if !b.wanted(what) {
			continue
		}
		p, err := b.prepare("softmax", nil, "softmax", 4*n*rows, 4*n*rows, uint32(rows), uint32(n))
		if err != nil {
			return err
		}
		randomize(p.buffers[0], false)
		var others []contender
		for _, call := range []string{"softmax", "softmax_allocating"} {
			var c contender
			if c, err = b.peer("torch", map[string]any{"rows": rows, "cols": n}, call); err != nil {
				break
			}
			if call == "softmax_allocating" {
				c.name += ", allocating"
			}
			others = append(others, c)
		}
		if err == nil {
			err = b.compare(subject{what: what, series: "softmax", size: float64(rows), work: float64(8 * n * rows), unit: gbps,
				name: p.name, run: p.run}, others...)
		}
		p.free()
		if err != nil {
			return err
		}
	}
	return nil
}
