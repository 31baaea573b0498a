//go:build cgo && opencl && (linux || darwin)

package opencl

// Programs: building from source, loading from bytes, and their kernels.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/go-gl/cl/v1.2/cl"

	"github.com/concord-compute/concord/internal/blocking"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// standard is the fixed part of the build options.
const standard = "-cl-std=CL1.2"

// firstBuild is how long other builds wait for the first build of their device.
const firstBuild = 5 * time.Second

// schema is part of the cache key. It has to be changed with any change of this package after which
// the same unit compiles to different bytes.
const schema = "opencl 2"

// Identity lists everything besides the program that decides the bytes of a binary.
func (d *device) Identity(context.Context) ([]string, error) {
	if number(d.id, cl.DEVICE_COMPILER_AVAILABLE) == 0 {
		return nil, d.errorf("compile", driver.ErrNoCompiler, "the driver brings no compiler; install the vendor's full "+
			"OpenCL package")
	}
	return []string{
		schema, standard,
		d.platform.name, d.platform.version, d.info.Vendor, deviceText(d.id, cl.DEVICE_NAME),
		deviceText(d.id, cl.DEVICE_VERSION), deviceText(d.id, cl.DEVICE_OPENCL_C_VERSION), d.info.DriverVersion,
	}, nil
}

// Compile builds the unit and returns the driver's binary, or, if the driver has none, the text,
// which Load then builds. OpenCL cannot stop a build: when ctx is done it goes on in its goroutine
// and its result is dropped.
func (d *device) Compile(ctx context.Context, unit *source.Unit, options []string) (driver.Binary, error) {
	identity, err := d.Identity(ctx)
	if err != nil {
		return driver.Binary{}, err
	}
	flags, err := d.buildOptions(unit, options)
	if err != nil {
		return driver.Binary{}, err
	}
	text, err := d.text(ctx, unit)
	switch {
	case err != nil && ctx.Err() != nil:
		return driver.Binary{}, &driver.OpError{Backend: name, Device: d.info.ID, Op: "compile " + unit.Name(),
			Err: context.Cause(ctx)}
	case err != nil:
		return driver.Binary{}, err
	}
	return blocking.Call(ctx, func() (driver.Binary, error) {
		p, log, err := d.build(unit.Name(), text, flags)
		if err != nil {
			return driver.Binary{}, err
		}
		defer cl.ReleaseProgram(p)
		f := frame{device: deviceHash(identity), options: flags, code: d.binaryOf(p)}
		if len(f.code) == 0 {
			f.source, f.code = true, []byte(text)
		}
		return driver.Binary{Code: f.bytes(), Log: log}, nil
	}, func(driver.Binary) {})
}

// Load makes a module from bytes of Compile. They are checked here as well as by the cache, because
// PoCL ends the process if they are truncated.
func (d *device) Load(ctx context.Context, unit *source.Unit, bin driver.Binary) (driver.Module, error) {
	if err := d.open("load"); err != nil {
		return nil, err
	}
	f, err := parseFrame(bin.Code)
	if err != nil {
		return nil, d.errorf("load "+unit.Name(), err, "compiled program")
	}
	if identity, err := d.Identity(ctx); err != nil || f.device != deviceHash(identity) {
		return nil, d.errorf("load "+unit.Name(), driver.ErrCorrupt, "compiled for another device or driver")
	}
	m, err := blocking.Call(ctx, func() (*module, error) {
		var p cl.Program
		var err error
		if f.source {
			p, _, err = d.build(unit.Name(), string(f.code), f.options)
		} else {
			p, err = d.fromBinary(unit.Name(), f)
		}
		if err != nil {
			return nil, err
		}
		return &module{d: d, unit: unit, options: f.options, p: p, kernels: map[string]*kernel{}}, nil
	}, func(m *module) { m.Close() })
	if err != nil {
		return nil, err
	}
	return m, nil
}

// building begins a build, and keeps the context until end is called: a build that nobody waits for any more goes on
// when the device is closed.
func (d *device) building(op string) (end func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.open(op); err != nil {
		return nil, err
	}
	if code := cl.RetainContext(d.context); code != cl.SUCCESS {
		return nil, d.failed(op, code, nil)
	}
	return func() { cl.ReleaseContext(d.context) }, nil
}

// build compiles text. The caller releases the program.
func (d *device) build(name, text, options string) (cl.Program, string, error) {
	op := "build " + name
	end, err := d.building(op)
	if err != nil {
		return nil, "", err
	}
	defer end()
	// The text is copied to C memory, because Go must not pass a pointer to a Go pointer to C.
	strs, free := cl.Strs(text)
	defer free()
	length := uint64(len(text))
	var code cl.ErrorCode
	p := cl.CreateProgramWithSource(d.context, 1, strs, &length, &code)
	if code != cl.SUCCESS {
		return nil, "", d.failed(op, code, driver.ErrOutOfMemory)
	}
	log, err := d.finishBuild(p, name, options, func(log string) string { return mapLog(log, name, text) })
	return p, log, err
}

// poclBuilds is held by a build of PoCL: 3.1 corrupts its memory when it builds several programs at once.
var poclBuilds sync.Mutex

// finishBuild builds a program, and releases it if that fails. Other builds for a device wait for
// its first build, up to firstBuild, which is enough for a driver to start its compiler.
func (d *device) finishBuild(p cl.Program, name, options string, mapped func(string) string) (string, error) {
	if d.platform.name == pocl {
		poclBuilds.Lock()
		defer poclBuilds.Unlock()
	}
	flags := append([]byte(options), 0)
	id := d.id // a copy, since cgo checks all of the memory that a pointer points into
	leave, err := builds.Enter(context.Background(), firstOf("build", d.id), firstBuild)
	if err != nil { // the first build takes long, but its compiler has started by now
		leave = func(bool) {}
	}
	code := cl.BuildProgram(p, 1, &id, &flags[0], nil, nil)
	leave(code == cl.SUCCESS)
	log := mapped(text(func(p cl.Program, q cl.ProgramBuildInfo, n uint64, to unsafe.Pointer, got *uint64) cl.ErrorCode {
		return cl.GetProgramBuildInfo(p, d.id, q, n, to, got)
	}, p, cl.PROGRAM_BUILD_LOG))
	if code == cl.SUCCESS {
		return log, nil
	}
	cl.ReleaseProgram(p)
	err = d.failed("build "+name, code, driver.ErrOutOfMemory)
	switch code {
	case cl.BUILD_PROGRAM_FAILURE:
		return "", &driver.BuildError{Source: name, Target: d.info.ID, Log: log}
	case cl.INVALID_BUILD_OPTIONS, cl.INVALID_BINARY:
		return "", &driver.BuildError{Source: name, Target: d.info.ID, Log: log, Err: err}
	}
	if errors.Is(err, driver.ErrCompile) {
		return "", &driver.BuildError{Source: name, Target: d.info.ID, Log: log, Err: err}
	}
	return "", err
}

// binaryOf returns the driver's binary of a program, or nil if the driver makes none.
func (d *device) binaryOf(p cl.Program) []byte {
	var size uint64
	if cl.GetProgramInfo(p, cl.PROGRAM_BINARY_SIZES, 8, unsafe.Pointer(&size), nil) != cl.SUCCESS || size == 0 ||
		size > 1<<31 {
		return nil
	}
	code := make([]byte, size)
	if copyBinary(p, code) != cl.SUCCESS {
		return nil
	}
	return code
}

func (d *device) fromBinary(name string, f frame) (cl.Program, error) {
	op := "load " + name
	end, err := d.building(op)
	if err != nil {
		return nil, err
	}
	defer end()
	strs, free := cl.Strs(string(f.code))
	defer free()
	size := uint64(len(f.code))
	var status int32
	var code cl.ErrorCode
	id := d.id
	p := cl.CreateProgramWithBinary(d.context, 1, &id, &size, strs, &status, &code)
	if code != cl.SUCCESS {
		return nil, d.failed(op, code, driver.ErrOutOfMemory)
	}
	if status != 0 {
		cl.ReleaseProgram(p)
		return nil, d.failed(op, cl.ErrorCode(status), driver.ErrCorrupt)
	}
	_, err = d.finishBuild(p, name, f.options, func(log string) string { return log })
	return p, err
}

// module is a loaded program, with the rendering that takes offsets once that was needed.
type module struct {
	d       *device
	unit    *source.Unit
	options string

	mu      sync.Mutex
	p       cl.Program
	kernels map[string]*kernel
	closed  bool

	offsetsOnce sync.Once
	offsetsErr  error
	offsetsP    cl.Program
}

var _ driver.Module = (*module)(nil)

// entry is one cl_kernel with the lock that is held while its arguments are set and it is enqueued.
type entry struct {
	mu sync.Mutex
	k  cl.Kernel // nil once the module is closed
}

type kernel struct {
	m    *module
	info driver.KernelInfo
	op   string
	own  entry
	with entry // the kernel that takes offsets; made when first needed
}

var _ driver.Kernel = (*kernel)(nil)

func (k *kernel) Info() driver.KernelInfo { return k.info }

func (m *module) Kernel(name string) (driver.Kernel, error) {
	op := "kernel " + name
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, m.d.errorf(op, driver.ErrClosed, "program")
	}
	if k := m.kernels[name]; k != nil {
		return k, nil
	}
	e, code := createKernel(m.p, m.unit.OpenCLName(name))
	if code == cl.INVALID_KERNEL_NAME {
		var names []string
		for _, k := range m.unit.Kernels() {
			names = append(names, k.Name)
		}
		return nil, m.d.errorf(op, driver.ErrNoKernel, "%s has %s", m.unit.Name(), strings.Join(names, ", "))
	}
	if code != cl.SUCCESS {
		return nil, m.d.failed(op, code, driver.ErrCompile)
	}
	k := &kernel{m: m, op: "launch " + name, info: m.d.kernelInfo(e, name)}
	k.own.k = e
	m.kernels[name] = k
	return k, nil
}

func createKernel(p cl.Program, name string) (cl.Kernel, cl.ErrorCode) {
	terminated := append([]byte(name), 0)
	var code cl.ErrorCode
	k := cl.CreateKernel(p, &terminated[0], &code)
	return k, code
}

func (d *device) kernelInfo(k cl.Kernel, name string) driver.KernelInfo {
	get := func(what cl.KernelWorkGroupInfo) int {
		var v uint64
		if cl.GetKernelWorkGroupInfo(k, d.id, what, 8, unsafe.Pointer(&v), nil) != cl.SUCCESS {
			return 0
		}
		return int(v)
	}
	most := get(cl.KERNEL_WORK_GROUP_SIZE)
	if d.platform.name == rusticl && most == 32 && d.info.MaxGroupSize > most {
		most = 0 // Mesa 22 reports 32 for every kernel, but runs larger groups
	}
	return driver.KernelInfo{Name: name, Implementation: "opencl", MaxGroup: most,
		GroupMultiple: get(cl.KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE),
		LocalBytes:    int64(get(cl.KERNEL_LOCAL_MEM_SIZE))}
}

// offsets returns the kernel that takes byte offsets, from the rendering of the
// unit that has them. That rendering is built at the first call, which can take long.
func (k *kernel) offsets() (*entry, error) {
	m := k.m
	m.offsetsOnce.Do(func() { m.offsetsErr = m.buildOffsets() })
	if m.offsetsErr != nil {
		return nil, m.offsetsErr
	}
	k.with.mu.Lock()
	defer k.with.mu.Unlock()
	if k.with.k == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.closed {
			return nil, fmt.Errorf("program: %w", driver.ErrClosed)
		}
		e, code := createKernel(m.offsetsP, m.unit.OpenCLName(k.info.Name))
		if code != cl.SUCCESS {
			return nil, fmt.Errorf("%s (code %d)", codeName(code), code)
		}
		k.with.k = e
	}
	return &k.with, nil
}

func (m *module) buildOffsets() error {
	text, err := m.d.offsetsText(m.unit)
	if err != nil {
		return err
	}
	p, _, err := m.d.build(m.unit.Name(), text, m.options)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		cl.ReleaseProgram(p)
		return fmt.Errorf("program: %w", driver.ErrClosed)
	}
	m.offsetsP = p
	return nil
}

// Close releases the program and its kernels. OpenCL retains the kernels of queued launches.
func (m *module) Close() error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return nil
	}
	m.closed = true
	kernels := m.kernels
	m.kernels = nil
	m.mu.Unlock()
	for _, k := range kernels {
		for _, e := range []*entry{&k.own, &k.with} {
			e.mu.Lock()
			if e.k != nil {
				cl.ReleaseKernel(e.k)
				e.k = nil
			}
			e.mu.Unlock()
		}
	}
	if m.offsetsP != nil {
		cl.ReleaseProgram(m.offsetsP)
	}
	return m.d.failed("close program", cl.ReleaseProgram(m.p), nil)
}
