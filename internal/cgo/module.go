//go:build cgo && unix

package cgo

// Loaded programs and their kernels.

import (
	"cmp"
	"context"
	"strings"
	"sync"

	"github.com/concord-compute/concord/internal/blocking"
	"github.com/concord-compute/concord/internal/seal"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// programs is the mark of sealed compiled programs. They are sealed because drivers get code
// without its length and do not check it.
const programs seal.Mark = "CNCDVND2"

type module struct {
	d       *device
	name    string
	names   []string // names of the kernels, in order
	kernels map[string]*kernel

	alive  sync.RWMutex // held for reading while c or a kernel is used
	closed bool
	c      cModule
}

type kernel struct {
	m    *module
	c    cKernel
	op   string // "launch saxpy"
	info driver.KernelInfo

	constants []int // indices of the parameters in constant memory, whose addresses Vendor.ConstantAlign restricts
}

var (
	_ driver.Module = (*module)(nil)
	_ driver.Kernel = (*kernel)(nil)
)

// Load implements driver.Compiler. Drivers may compile further here, which can take seconds; when
// ctx is done Load returns, the work goes on in its goroutine, and its result is dropped.
func (d *device) Load(ctx context.Context, unit *source.Unit, bin driver.Binary) (driver.Module, error) {
	op := "load " + unit.Name()
	code, err := programs.Open(bin.Code)
	if err != nil {
		return nil, &driver.OpError{Backend: d.b.v.Name, Device: d.info.ID, Op: op, Err: err}
	}
	m, err := blocking.Call(ctx, func() (*module, error) { return d.load(op, unit, code) }, func(m *module) {
		_ = m.Close()
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (d *device) load(op string, unit *source.Unit, code []byte) (*module, error) {
	if err := d.enter(op); err != nil {
		return nil, err
	}
	defer d.leave()
	c, log, f := d.t.moduleLoad(d.c, code)
	if f != nil {
		f.text += remedy(d.outdated(f.code))
		err := d.failed(op, f)
		if f.status == statusCompile || log != "" {
			err = &driver.BuildError{Source: unit.Name(), Target: d.info.ID, Log: log, Err: err}
		}
		return nil, err
	}
	m := &module{d: d, name: unit.Name(), c: c, kernels: map[string]*kernel{}}
	for _, k := range unit.Kernels() {
		if err := m.add(&k); err != nil {
			_ = d.t.moduleUnload(c)
			return nil, err
		}
	}
	d.hold(m)
	return m, nil
}

// outdated returns a remedy if the driver refused a program because the driver is older than the
// compiler, and else "".
func (d *device) outdated(code int) string {
	if d.b.v.Outdated == nil {
		return ""
	}
	v, f := d.t.versions(d.lib.c)
	if f != nil {
		return ""
	}
	return d.b.v.Outdated(code, int(v.driver), int(v.compiler_major), int(v.compiler_minor))
}

// add looks up a kernel by its name in renderings (source.EntryPrefix), or by its own name.
func (m *module) add(entry *source.Kernel) error {
	d, name := m.d, entry.Name
	c, raw, f := d.t.moduleKernel(m.c, source.EntryPrefix+name)
	if f != nil && f.status == statusNotFound {
		c, raw, f = d.t.moduleKernel(m.c, name)
	}
	if f != nil {
		op := "load " + m.name + ": kernel " + name
		if f.status == statusNotFound { // these bytes were compiled from another unit
			return f.as(d.b.v.Name, d.info.ID, op, driver.ErrCorrupt)
		}
		return d.failed(op, f)
	}
	m.names = append(m.names, name)
	var constants []int
	for i := range entry.Params {
		if p := &entry.Params[i]; d.constantAlign > 1 && p.Pointer && p.Space == source.Constant {
			constants = append(constants, i)
		}
	}
	m.kernels[name] = &kernel{m: m, c: c, constants: constants, op: "launch " + name, info: driver.KernelInfo{
		Name: name, Implementation: d.b.v.Target.String(), GroupMultiple: cmp.Or(int(raw.multiple), d.info.SubgroupSize),
		MaxGroup: int(raw.max_group), LocalBytes: int64(raw.local_bytes),
		Registers: int(raw.registers), SpillBytes: int64(raw.spill_bytes),
	}}
	return nil
}

// Kernel implements driver.Module.
func (m *module) Kernel(name string) (driver.Kernel, error) {
	op := "kernel " + name
	if err := m.enter(op); err != nil {
		return nil, err
	}
	defer m.leave()
	if k := m.kernels[name]; k != nil {
		return k, nil
	}
	return nil, m.d.errorf(op, driver.ErrNoKernel, "%s has %s", m.name, strings.Join(m.names, ", "))
}

// Info implements driver.Kernel.
func (k *kernel) Info() driver.KernelInfo { return k.info }

// enter begins a call that uses the module. If it succeeds, the call has to end with leave.
func (m *module) enter(op string) error {
	m.alive.RLock()
	if m.closed {
		m.alive.RUnlock()
		return m.d.errorf(op, driver.ErrClosed, "program")
	}
	return nil
}

func (m *module) leave() { m.alive.RUnlock() }

func (m *module) order() int { return orderModules }

// Close implements driver.Module.
func (m *module) Close() error {
	m.alive.Lock()
	defer m.alive.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	defer m.d.forget(m) // last, since the device's Close waits for the objects that it holds
	return m.d.freed("close program", m.d.t.moduleUnload(m.c))
}
