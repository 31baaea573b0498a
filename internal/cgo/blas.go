//go:build cgo && unix

package cgo

// The vendor's BLAS as the device's own implementation of the catalog's gemm.

import (
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"sync/atomic"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// blas is the state of the vendor's BLAS on a device.
type blas struct {
	mu       sync.Mutex // held while the library is opened, and while a capture begins
	open     bool
	err      error        // why the library cannot be used
	captures atomic.Int32 // streams that record a graph; the library cannot be opened meanwhile
}

// gemm is the kernel of a matrix product by the vendor's library: C = alpha op(A) op(B) + beta C.
type gemm struct {
	d              *device
	info           driver.KernelInfo
	typ            gemmType
	transA, transB bool
}

// gemmType is an element type that the library computes in.
type gemmType struct {
	number int32 // cs_gemm.type
	size   int64 // bytes of an element
	scalar int   // bytes of alpha and beta
}

// Half is summed in float, as in the portable text.
var gemmTypes = map[string]gemmType{"f32": {0, 4, 4}, "f64": {1, 8, 8}, "f16": {2, 2, 4}}

// The arguments of gemm in the catalog.
const (
	gemmM = iota
	gemmN
	gemmK
	gemmAlpha
	gemmA
	gemmLDA
	gemmB
	gemmLDB
	gemmBeta
	gemmC
	gemmLDC
	gemmArgs
)

// gemmWork is the smallest m*n*k for which the library is used. Below it the overhead of a launch
// dominates, and the portable kernel is as fast.
const gemmWork = 64 * 64 * 64

var (
	_ driver.Natives   = (*device)(nil)
	_ driver.NoNative  = (*device)(nil)
	_ driver.Selective = (*gemm)(nil)
)

// Native implements driver.Natives: gemm, if the vendor's BLAS is installed. The first call opens
// the library, which can take a second and some memory of the device.
func (d *device) Native(unit *source.Unit, name string) (driver.Kernel, bool) {
	t, ok := d.gemmOf(unit, name)
	if !ok || d.needBLAS() != nil {
		return nil, false
	}
	return &gemm{d: d, typ: t, transA: define(unit, "TRANS_A", "0") == "1", transB: define(unit, "TRANS_B", "0") == "1",
		info: driver.KernelInfo{Name: name, Implementation: d.b.v.BLASName, Native: true}}, true
}

// WhyNotNative implements driver.NoNative.
func (d *device) WhyNotNative(unit *source.Unit, name string) error {
	if _, ok := d.gemmOf(unit, name); !ok {
		return nil
	}
	return d.needBLAS()
}

// gemmOf reports whether a kernel is a gemm that the library computes, and returns the type of all its matrices.
func (d *device) gemmOf(unit *source.Unit, name string) (gemmType, bool) {
	if d.b.v.BLAS == nil || unit.Family() != "gemm" || name != "gemm" {
		return gemmType{}, false
	}
	decl, ok := unit.Kernel(name)
	own := define(unit, "T", "f32")
	t, known := gemmTypes[own]
	one := define(unit, "OUT", own) == own && define(unit, "TYPE_A", own) == own && define(unit, "TYPE_B", own) == own
	return t, ok && known && one && len(decl.Params) == gemmArgs
}

// define returns the value of a definition that a unit was parsed with, or a default.
func define(unit *source.Unit, name, otherwise string) string {
	if value, ok := unit.Define(name); ok {
		return value
	}
	return otherwise
}

// needBLAS opens the library unless it is open. A lack of memory is not remembered, since a later
// attempt may succeed; any other error is.
func (d *device) needBLAS() error {
	b := &d.blas
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open || b.err != nil {
		return b.err
	}
	op := "open " + d.b.v.BLASName
	if b.captures.Load() > 0 {
		return d.errorf(op, driver.ErrUnsupported, "not while a stream of the device records a graph")
	}
	err := d.openBLAS(op)
	b.open = err == nil
	if !errors.Is(err, driver.ErrOutOfMemory) {
		b.err = err
	}
	return err
}

func (d *device) openBLAS(op string) error {
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	return d.failed(op, d.t.blasOpen(d.c, d.b.v.BLAS(d.lib.cfg)))
}

// Info implements driver.Kernel.
func (g *gemm) Info() driver.KernelInfo { return g.info }

// gemmCall holds the arguments of one product.
type gemmCall struct {
	m, n, k, lda, ldb, ldc int64
	alpha, beta            float64
	a, b, c                driver.Memory
}

// read decodes the arguments of a launch. It returns false if they are not those of gemm.
func (g *gemm) read(l *driver.Launch) (c gemmCall, ok bool) {
	if len(l.Args) != gemmArgs {
		return c, false
	}
	ok = true
	value := func(i, size int) []byte {
		a := &l.Args[i]
		if a.Kind != driver.ArgValue || a.Size != size || a.Offset < 0 || a.Offset+size > len(l.Data) {
			ok = false
			return make([]byte, size)
		}
		return l.Data[a.Offset : a.Offset+size]
	}
	count := func(i int) int64 { return int64(binary.LittleEndian.Uint32(value(i, 4))) }
	scalar := func(i int) float64 {
		if g.typ.scalar == 8 {
			return math.Float64frombits(binary.LittleEndian.Uint64(value(i, 8)))
		}
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(value(i, 4))))
	}
	memory := func(i int) driver.Memory {
		ok = ok && l.Args[i].Kind == driver.ArgMemory
		return l.Args[i].Memory
	}
	c = gemmCall{m: count(gemmM), n: count(gemmN), k: count(gemmK), lda: count(gemmLDA), ldb: count(gemmLDB),
		ldc:   count(gemmLDC),
		alpha: scalar(gemmAlpha), beta: scalar(gemmBeta), a: memory(gemmA), b: memory(gemmB), c: memory(gemmC)}
	return c, ok
}

// shapes returns the rows and columns of A and B as they are stored.
func (g *gemm) shapes(c *gemmCall) (a, b [2]int64) {
	a, b = [2]int64{c.m, c.k}, [2]int64{c.k, c.n}
	if g.transA {
		a[0], a[1] = a[1], a[0]
	}
	if g.transB {
		b[0], b[1] = b[1], b[0]
	}
	return a, b
}

// fits reports whether the library can compute a product: neither alpha nor a dimension is 0, rows
// do not overlap, and all sizes fit the 32-bit int of its interface.
func (g *gemm) fits(c *gemmCall) bool {
	a, b := g.shapes(c)
	return c.m > 0 && c.n > 0 && c.k > 0 && c.alpha != 0 && c.lda >= a[1] && c.ldb >= b[1] && c.ldc >= c.n &&
		max(c.m, c.n, c.k, c.lda, c.ldb, c.ldc) <= math.MaxInt32
}

// Takes implements driver.Selective.
func (g *gemm) Takes(l *driver.Launch) bool {
	c, ok := g.read(l)
	return ok && g.fits(&c) && c.m*c.n >= (gemmWork+c.k-1)/c.k
}

// launchGEMM queues a product. The grid does not matter.
func (s *stream) launchGEMM(g *gemm, l *driver.Launch) error {
	const op = "launch gemm"
	refuse := func(is error, format string, args ...any) error { return s.d.errorf(op, is, format, args...) }
	c, ok := g.read(l)
	switch {
	case g.d != s.d:
		return refuse(driver.ErrInvalidArgument, "the kernel belongs to another device")
	case !ok:
		return refuse(driver.ErrInvalidArgument, "the arguments are not those of gemm")
	case !g.fits(&c):
		return refuse(driver.ErrUnsupported, "%s computes no product of %d x %d x %d with alpha %g and rows of %d, %d and "+
			"%d elements",
			g.info.Implementation, c.m, c.n, c.k, c.alpha, c.lda, c.ldb, c.ldc)
	}
	a, b := g.shapes(&c)
	for _, m := range []struct {
		name           string
		rows, cols, ld int64
		bytes          int64
	}{{"A", a[0], a[1], c.lda, c.a.Size}, {"B", b[0], b[1], c.ldb, c.b.Size}, {"C", c.m, c.n, c.ldc, c.c.Size}} {
		if need, have := (m.rows-1)*m.ld+m.cols, m.bytes/g.typ.size; need > have {
			return refuse(driver.ErrBufferOverflow, "%s has %d elements, %d are needed", m.name, have, need)
		}
	}
	if err := s.enter(op); err != nil {
		return err
	}
	f := s.t.gemm(s.c, g, &c)
	if f != nil && f.status == statusInvalid {
		f.status = statusRefused
	}
	return s.queued(op, f)
}

// notOurs returns the error for a kernel that does not belong to a program of the device.
func (d *device) notOurs(op string, k driver.Kernel) error {
	if g, ok := k.(*gemm); ok && g.d == d {
		return d.errorf(op, driver.ErrUnsupported, "%s does not report this", g.info.Implementation)
	}
	return d.errorf(op, driver.ErrInvalidArgument, "kernel is a %T, or one of another device", k)
}
