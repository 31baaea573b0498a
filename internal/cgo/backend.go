//go:build cgo && unix

package cgo

// The backend: finding the devices of the machine and opening one of them.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/concord-compute/concord/internal/blocking"
	"github.com/concord-compute/concord/runtime/driver"
)

const enabled = true

// NewBackend returns a vendor's backend. It touches no library. The backend is a
// driver.CrossCompiler as well.
func NewBackend(v Vendor) driver.Backend { return &backend{v: v} }

type backend struct {
	v     Vendor
	marks marks
	gate  blocking.Gate // orders the first calls into the driver, which all sessions of the process share
}

// first identifies a kind of first call for the gate. Different configurations may load different
// files of the driver.
type first struct {
	kind    string
	ordinal int
	files   string
}

func (b *backend) firstOf(kind string, ordinal int, cfg *driver.Config) first {
	drivers, _ := b.v.Libraries(cfg)
	return first{kind, ordinal, strings.Join(drivers, "\n")}
}

var (
	_ driver.CrossCompiler = (*backend)(nil)
	_ driver.Describer     = (*backend)(nil)
	_ driver.Marker        = (*backend)(nil)
)

func (b *backend) Name() string { return b.v.Name }

func (b *backend) Describe() driver.Description { return b.v.Description }

// library is opened libraries: a driver, a compiler, or both.
type library struct {
	t                table
	c                cLib
	driver, compiler bool
	tried            []string
	cfg              *driver.Config // the configuration that the libraries were searched with
}

// table returns the vendor's table, if it is in the build. One without a required entry is a mistake
// in the vendor's shim, at which it panics.
func (b *backend) table() (table, bool) {
	if b.v.Table == nil {
		return 0, false
	}
	p := b.v.Table()
	t := table(uintptr(p))
	if p != nil && t.lacks() != "" {
		panic(fmt.Sprintf("the table of %s has no %s", b.v.Name, t.lacks()))
	}
	return t, p != nil
}

// libraries opens the driver and the compiler, as far as they are installed. Opening the same files
// again is cheap.
func (b *backend) libraries(cfg *driver.Config) (library, error) {
	t, ok := b.table()
	if !ok {
		return library{}, b.error("open", driver.ErrNoDevice, b.v.Missing)
	}
	drivers, compilers := b.v.Libraries(cfg)
	c, tried, f := t.open(drivers, compilers)
	l := library{t: t, c: c, tried: strings.FieldsFunc(tried, func(r rune) bool { return r == '\n' }), cfg: cfg}
	if f != nil {
		return l, f.as(b.v.Name, "", "open", driver.ErrNoDevice)
	}
	l.driver, l.compiler = t.hasDriver(c), b.v.Compiler != nil || t.hasCompiler(c)
	return l, nil
}

// error returns an error of the backend that has no code.
func (b *backend) error(op string, is error, detail string) error {
	return &driver.OpError{Backend: b.v.Name, Op: op, Detail: detail, Err: is}
}

// absent returns why the machine cannot have a device of the vendor, or "". It opens no library.
func (b *backend) absent(cfg *driver.Config) string {
	if why := b.sign(cfg); why != "" {
		return "no " + b.v.Maker + " GPU: " + why + remedy(b.v.Remedies.Absent)
	}
	return ""
}

// sign asks Vendor.Absent.
func (b *backend) sign(cfg *driver.Config) string {
	if b.v.Absent == nil {
		return ""
	}
	return b.v.Absent(cfg)
}

// Probe lists the devices. Drivers can take long to start: when ctx is done Probe returns, the work
// goes on in its goroutine, and its result is dropped.
func (b *backend) Probe(ctx context.Context, cfg *driver.Config) driver.Probe {
	cfg = cmp.Or(cfg, &driver.Config{})
	start := time.Now()
	p, err := blocking.Call(ctx, func() (driver.Probe, error) { return b.probe(ctx, cfg) }, func(driver.Probe) {})
	if err != nil {
		p = driver.Probe{Backend: b.v.Name, State: driver.Unavailable,
			Reason: "asking the " + b.v.Maker + " driver for its devices: " + err.Error()}
	}
	p.Remedy = b.advice(&p, cfg)
	p.Elapsed = time.Since(start)
	return p
}

// advice returns the remedy for a probe that found no device. If the backend is not in the build,
// the reason already says how to change that.
func (b *backend) advice(p *driver.Probe, cfg *driver.Config) string {
	switch {
	case p.State == driver.Available:
		return ""
	case p.State == driver.Disabled:
		return p.Reason
	case b.v.Remedies.Probe == nil:
		return Advice(p.Reason, "")
	}
	return Advice(p.Reason, b.v.Remedies.Probe(cfg))
}

func (b *backend) probe(ctx context.Context, cfg *driver.Config) (p driver.Probe, err error) {
	leave, err := b.gate.Enter(ctx, b.firstOf("list", 0, cfg), cfg.ProbeLimit())
	if err != nil {
		return p, err
	}
	defer func() { leave(p.State == driver.Available) }()
	return b.ask(cfg), nil
}

// ask does the work of a probe, after the gate has let it through.
func (b *backend) ask(cfg *driver.Config) driver.Probe {
	p := driver.Probe{Backend: b.v.Name, State: driver.Unavailable}
	if _, ok := b.table(); !ok {
		p.State, p.Reason = driver.Disabled, b.v.Missing
		return p
	}
	if p.Reason = b.absent(cfg); p.Reason != "" {
		p.Tried = []string{b.sign(cfg) + ": no library was opened"}
		return p
	}
	l, err := b.libraries(cfg)
	p.Tried = l.tried
	if err != nil || !l.driver {
		p.Reason = b.noDriver(l)
	}
	if err != nil {
		return p
	}
	if missing := l.t.missing(l.c); missing != "" {
		p.Tried = append(p.Tried, "not in these libraries, done without: "+missing)
	}
	if l.driver && !l.compiler {
		p.Tried = append(p.Tried, b.noCompiler(l))
	}
	b.probeVersions(&p, l)
	p.Libraries = l.t.libraries(l.c, nil)
	if !l.driver {
		return p
	}
	count, f := l.t.deviceCount(l.c)
	if f != nil {
		p.Reason = b.words("the driver does not start", f) + remedy(b.v.Remedies.Devices)
		return p
	}
	for i := range count {
		info, err := b.info(l, i, count)
		if err != nil {
			p.Tried = append(p.Tried, err.Error())
			continue
		}
		p.Devices = append(p.Devices, info)
	}
	if len(p.Devices) == 0 {
		p.Reason = fmt.Sprintf("the driver has %d devices and describes none of them", count)
		if count == 0 {
			p.Reason = "the driver has no device"
		}
		p.Reason += remedy(b.v.Remedies.Devices)
		return p
	}
	p.State = driver.Available
	return p
}

func (b *backend) words(what string, f *failure) string {
	return fmt.Sprintf("%s: %s (code %d)", what, f.text, f.code)
}

// probeVersions fills in the versions that are known; others stay empty.
func (b *backend) probeVersions(p *driver.Probe, l library) {
	v, f := l.t.versions(l.c)
	if f != nil {
		p.Tried = append(p.Tried, b.words("versions", f))
		return
	}
	p.DriverVersion, p.RuntimeVersion = b.version(int(v.driver)), b.version(int(v.runtime))
	if v.compiler_major != 0 {
		p.CompilerVersion = fmt.Sprintf("%d.%d", v.compiler_major, v.compiler_minor)
	}
}

func (b *backend) version(n int) string {
	if n == 0 {
		return ""
	}
	return b.v.Version(n)
}

// info describes the device with an ordinal. count is the number of devices.
func (b *backend) info(l library, ordinal, count int) (driver.Info, error) {
	id := fmt.Sprintf("%s:%d", b.v.Name, ordinal)
	c, f := l.t.deviceInfo(l.c, ordinal)
	if f != nil {
		return driver.Info{}, f.error(b.v.Name, id, "describe")
	}
	drv := ""
	if v, f := l.t.versions(l.c); f == nil {
		drv = b.version(int(v.driver))
	}
	info := b.v.describe(c, ordinal, drv)
	peers := make([]bool, count)
	for i := range peers {
		if i == ordinal {
			peers[i] = true
			continue
		}
		if peers[i], f = l.t.peerAccess(l.c, ordinal, i); f != nil {
			return info, nil // without peers, which could not be queried
		}
	}
	info.PeerAccess = peers
	return info, nil
}

// Open opens the device with that index in the driver's own order.
func (b *backend) Open(ctx context.Context, nativeIndex int, cfg *driver.Config) (driver.Device, error) {
	cfg = cmp.Or(cfg, &driver.Config{})
	d, err := blocking.Call(ctx, func() (*device, error) { return b.openDevice(ctx, nativeIndex, cfg) }, func(d *device) {
		_ = d.Close()
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (b *backend) openDevice(ctx context.Context, ordinal int, cfg *driver.Config) (d *device, err error) {
	const op = "open"
	id := fmt.Sprintf("%s:%d", b.v.Name, ordinal)
	refuse := func(is error, detail string) error {
		return &driver.OpError{Backend: b.v.Name, Device: id, Op: op, Detail: detail, Err: is}
	}
	if _, ok := b.table(); !ok {
		return nil, refuse(driver.ErrNoDevice, b.v.Missing)
	}
	if why := b.absent(cfg); why != "" {
		return nil, refuse(driver.ErrNoDevice, why)
	}
	leave, err := b.gate.Enter(ctx, b.firstOf(op, ordinal, cfg), cfg.OpenLimit())
	if errors.Is(err, blocking.ErrHeld) {
		return nil, refuse(driver.ErrTimeout, err.Error())
	}
	if err != nil {
		return nil, err
	}
	defer func() { leave(err == nil) }()
	l, err := b.libraries(cfg)
	if err != nil || !l.driver {
		return nil, refuse(driver.ErrNoDevice, b.noDriver(l))
	}
	count, f := l.t.deviceCount(l.c)
	if f != nil {
		return nil, f.as(b.v.Name, id, op, driver.ErrNoDevice)
	}
	if ordinal < 0 || ordinal >= count {
		return nil, refuse(driver.ErrDeviceIndex, fmt.Sprintf("the driver has %d devices", count))
	}
	info, err := b.info(l, ordinal, count)
	if err != nil {
		return nil, err
	}
	c, f := l.t.deviceOpen(l.c, ordinal)
	if f != nil {
		return nil, f.error(b.v.Name, id, op)
	}
	return newDevice(b, l, c, info), nil
}
