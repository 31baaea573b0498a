//go:build cgo && unix

package cgo

// Calls into C, continued: streams, events, graphs, the vendor's BLAS and library of collectives.

/*
#include "table.h"

#cgo noescape table_stream_new
#cgo nocallback table_stream_new
#cgo noescape table_stream_wrap
#cgo nocallback table_stream_wrap
#cgo noescape table_stream_handle
#cgo nocallback table_stream_handle
#cgo noescape table_stream_close
#cgo nocallback table_stream_close
#cgo noescape table_alloc_on
#cgo nocallback table_alloc_on
#cgo noescape table_free_on
#cgo nocallback table_free_on
#cgo noescape table_upload
#cgo nocallback table_upload
#cgo noescape table_download
#cgo nocallback table_download
#cgo noescape table_upload_pinned
#cgo nocallback table_upload_pinned
#cgo noescape table_download_pinned
#cgo nocallback table_download_pinned
#cgo noescape table_copy
#cgo nocallback table_copy
#cgo noescape table_copy_peer
#cgo nocallback table_copy_peer
#cgo noescape table_peer
#cgo nocallback table_peer
#cgo noescape table_fill
#cgo nocallback table_fill
#cgo noescape table_prefetch
#cgo nocallback table_prefetch
#cgo noescape table_launch
#cgo nocallback table_launch
#cgo noescape table_stream_wait
#cgo nocallback table_stream_wait
#cgo noescape table_stream_query
#cgo nocallback table_stream_query
#cgo noescape table_stream_sync
#cgo nocallback table_stream_sync
#cgo noescape table_record
#cgo nocallback table_record
#cgo noescape table_event_query
#cgo nocallback table_event_query
#cgo noescape table_event_wait
#cgo nocallback table_event_wait
#cgo noescape table_event_elapsed
#cgo nocallback table_event_elapsed
#cgo noescape table_event_close
#cgo nocallback table_event_close
#cgo noescape table_capture_begin
#cgo nocallback table_capture_begin
#cgo noescape table_capture_end
#cgo nocallback table_capture_end
#cgo noescape table_capture_drop
#cgo nocallback table_capture_drop
#cgo noescape table_graph_launch
#cgo nocallback table_graph_launch
#cgo noescape table_graph_close
#cgo nocallback table_graph_close
#cgo noescape table_blas_open
#cgo nocallback table_blas_open
#cgo noescape table_gemm
#cgo nocallback table_gemm
#cgo noescape table_comm_id
#cgo nocallback table_comm_id
#cgo noescape table_comm_join
#cgo nocallback table_comm_join
#cgo noescape table_comm_queue
#cgo nocallback table_comm_queue
#cgo noescape table_comm_state
#cgo nocallback table_comm_state
#cgo noescape table_comm_abort
#cgo nocallback table_comm_abort
*/
import "C"

import (
	"unsafe"

	"github.com/concord-compute/concord/runtime/driver"
)

func (t table) streamNew(d cDevice, p driver.Priority) (s cStream, f *failure) {
	var e C.cs_error
	f = failed(C.table_stream_new(C.uintptr_t(t), d, C.int32_t(p), &s, &e), &e)
	return s, f
}

func (t table) streamWrap(d cDevice, handle uintptr) (s cStream, f *failure) {
	var e C.cs_error
	f = failed(C.table_stream_wrap(C.uintptr_t(t), d, C.uint64_t(handle), &s, &e), &e)
	return s, f
}

func (t table) streamHandle(s cStream) uintptr {
	return uintptr(C.table_stream_handle(C.uintptr_t(t), s))
}

// streamClose waits for the work in flight.
func (t table) streamClose(s cStream) *failure {
	var e C.cs_error
	return failed(C.table_stream_close(C.uintptr_t(t), s, &e), &e)
}

func (t table) allocOn(s cStream, n int64) (uint64, *failure) {
	var e C.cs_error
	var address C.uint64_t
	f := failed(C.table_alloc_on(C.uintptr_t(t), s, C.uint64_t(n), &address, &e), &e)
	return uint64(address), f
}

func (t table) freeOn(s cStream, address uint64) *failure {
	var e C.cs_error
	return failed(C.table_free_on(C.uintptr_t(t), s, C.uint64_t(address), &e), &e)
}

func (t table) upload(s cStream, dst uint64, src []byte) *failure {
	var e C.cs_error
	return failed(C.table_upload(C.uintptr_t(t), s, C.uint64_t(dst), (*C.uchar)(unsafe.SliceData(src)),
		C.uint64_t(len(src)), &e), &e)
}

func (t table) download(s cStream, dst []byte, src uint64) *failure {
	var e C.cs_error
	return failed(C.table_download(C.uintptr_t(t), s, (*C.uchar)(unsafe.SliceData(dst)), C.uint64_t(src),
		C.uint64_t(len(dst)), &e), &e)
}

func (t table) uploadPinned(s cStream, dst, host uint64, n int64) *failure {
	var e C.cs_error
	return failed(C.table_upload_pinned(C.uintptr_t(t), s, C.uint64_t(dst), C.uint64_t(host), C.uint64_t(n), &e), &e)
}

func (t table) downloadPinned(s cStream, host, src uint64, n int64) *failure {
	var e C.cs_error
	return failed(C.table_download_pinned(C.uintptr_t(t), s, C.uint64_t(host), C.uint64_t(src), C.uint64_t(n), &e), &e)
}

func (t table) copy(s cStream, dst, src uint64, n int64) *failure {
	var e C.cs_error
	return failed(C.table_copy(C.uintptr_t(t), s, C.uint64_t(dst), C.uint64_t(src), C.uint64_t(n), &e), &e)
}

func (t table) copyPeer(s cStream, to cDevice, dst uint64, from cDevice, src uint64, n int64) *failure {
	var e C.cs_error
	return failed(C.table_copy_peer(C.uintptr_t(t), s, to, C.uint64_t(dst), from, C.uint64_t(src), C.uint64_t(n), &e), &e)
}

func (t table) peer(to, from cDevice, enable bool) (bool, *failure) {
	var e C.cs_error
	var can C.int32_t
	f := failed(C.table_peer(C.uintptr_t(t), to, from, cBool(enable), &can, &e), &e)
	return can != 0, f
}

func (t table) fill(s cStream, dst uint64, n int64, pattern []byte) *failure {
	var e C.cs_error
	return failed(C.table_fill(C.uintptr_t(t), s, C.uint64_t(dst), C.uint64_t(n),
		(*C.uchar)(unsafe.SliceData(pattern)), C.uint64_t(len(pattern)), &e), &e)
}

func (t table) prefetch(s cStream, address uint64, n int64, host bool) *failure {
	var e C.cs_error
	return failed(C.table_prefetch(C.uintptr_t(t), s, C.uint64_t(address), C.uint64_t(n), cBool(host), &e), &e)
}

// number returns the address of an object of C.
func number(p unsafe.Pointer) C.uintptr_t { return C.uintptr_t(uintptr(p)) }

func (t table) launch(s cStream, k cKernel, groups, group *[3]uint64, args []driver.Arg, data []byte) *failure {
	var e C.cs_error
	return failed(C.table_launch(C.uintptr_t(t), number(unsafe.Pointer(s)), number(unsafe.Pointer(k)),
		(*C.uint64_t)(unsafe.Pointer(groups)), (*C.uint64_t)(unsafe.Pointer(group)),
		(*C.cs_arg)(unsafe.Pointer(unsafe.SliceData(args))), C.uint32_t(len(args)), (*C.uchar)(unsafe.SliceData(data)),
		&e), &e)
}

func (t table) streamWait(s cStream, ev cEvent) *failure {
	var e C.cs_error
	return failed(C.table_stream_wait(C.uintptr_t(t), s, ev, &e), &e)
}

func (t table) streamQuery(s cStream) (bool, *failure) {
	var e C.cs_error
	var done C.int32_t
	f := failed(C.table_stream_query(C.uintptr_t(t), s, &done, &e), &e)
	return done != 0, f
}

func (t table) streamSync(s cStream) *failure {
	var e C.cs_error
	return failed(C.table_stream_sync(C.uintptr_t(t), s, &e), &e)
}

func (t table) record(s cStream, timing bool) (ev cEvent, f *failure) {
	var e C.cs_error
	f = failed(C.table_record(C.uintptr_t(t), s, cBool(timing), &ev, &e), &e)
	return ev, f
}

func (t table) eventQuery(ev cEvent) (bool, *failure) {
	var e C.cs_error
	var done C.int32_t
	f := failed(C.table_event_query(C.uintptr_t(t), ev, &done, &e), &e)
	return done != 0, f
}

func (t table) eventWait(ev cEvent) *failure {
	var e C.cs_error
	return failed(C.table_event_wait(C.uintptr_t(t), ev, &e), &e)
}

// eventElapsed returns nanoseconds.
func (t table) eventElapsed(from, to cEvent) (float64, *failure) {
	var e C.cs_error
	var ns C.double
	f := failed(C.table_event_elapsed(C.uintptr_t(t), from, to, &ns, &e), &e)
	return float64(ns), f
}

func (t table) eventClose(ev cEvent) { C.table_event_close(C.uintptr_t(t), ev) }

func (t table) captureBegin(s cStream) *failure {
	var e C.cs_error
	return failed(C.table_capture_begin(C.uintptr_t(t), s, &e), &e)
}

// captureEnd updates g, or makes a new graph if it is nil.
func (t table) captureEnd(s cStream, g cGraph) (cGraph, *failure) {
	var e C.cs_error
	f := failed(C.table_capture_end(C.uintptr_t(t), s, &g, &e), &e)
	return g, f
}

func (t table) captureDrop(s cStream) *failure {
	var e C.cs_error
	return failed(C.table_capture_drop(C.uintptr_t(t), s, &e), &e)
}

func (t table) graphLaunch(g cGraph, s cStream) *failure {
	var e C.cs_error
	return failed(C.table_graph_launch(C.uintptr_t(t), g, s, &e), &e)
}

func (t table) graphClose(g cGraph) *failure {
	var e C.cs_error
	return failed(C.table_graph_close(C.uintptr_t(t), g, &e), &e)
}

func (t table) blasOpen(d cDevice, names []string) *failure {
	var e C.cs_error
	n := cList(names)
	return failed(C.table_blas_open(C.uintptr_t(t), d, chars(n), &e), &e)
}

func (t table) gemm(s cStream, g *gemm, c *gemmCall) *failure {
	var e C.cs_error
	p := C.cs_gemm{_type: C.int32_t(g.typ.number), trans_a: cBool(g.transA), trans_b: cBool(g.transB),
		m: C.int64_t(c.m), n: C.int64_t(c.n), k: C.int64_t(c.k), alpha: C.double(c.alpha), beta: C.double(c.beta),
		a: C.uint64_t(address(c.a)), b: C.uint64_t(address(c.b)), c: C.uint64_t(address(c.c)),
		lda: C.int64_t(c.lda), ldb: C.int64_t(c.ldb), ldc: C.int64_t(c.ldc)}
	return failed(C.table_gemm(C.uintptr_t(t), s, &p, &e), &e)
}

func (t table) commID(d cDevice, names []string) ([]byte, *failure) {
	var e C.cs_error
	n, id := cList(names), make([]byte, C.CS_COMM_ID)
	f := failed(C.table_comm_id(C.uintptr_t(t), d, chars(n), (*C.uchar)(unsafe.SliceData(id)), &e), &e)
	return id, f
}

func (t table) commJoin(d cDevice, names []string, id []byte, rank, ranks int) (c cComm, f *failure) {
	var e C.cs_error
	n := cList(names)
	f = failed(C.table_comm_join(C.uintptr_t(t), d, chars(n), (*C.uchar)(unsafe.SliceData(id)), C.int32_t(rank),
		C.int32_t(ranks), &c, &e), &e)
	return c, f
}

func (t table) commQueue(c cComm, s cStream, w *driver.Collective, typ int32) *failure {
	var e C.cs_error
	size := int64(w.Type.Size())
	p := C.cs_collective{kind: C.int32_t(w.Kind), _type: C.int32_t(typ), op: C.int32_t(w.Op), root: C.int32_t(w.Root),
		to: C.int32_t(w.To), from: C.int32_t(w.From), count: C.uint64_t(w.Src.Size / size),
		received: C.uint64_t(w.Dst.Size / size), dst: C.uint64_t(address(w.Dst)), src: C.uint64_t(address(w.Src))}
	if w.Kind == driver.ReduceScatter || w.Kind == driver.Broadcast {
		p.count = p.received
	}
	return failed(C.table_comm_queue(C.uintptr_t(t), c, s, &p, &e), &e)
}

func (t table) commState(c cComm) (bool, *failure) {
	var e C.cs_error
	var done C.int32_t
	f := failed(C.table_comm_state(C.uintptr_t(t), c, &done, &e), &e)
	return done != 0, f
}

func (t table) commAbort(c cComm) *failure {
	var e C.cs_error
	return failed(C.table_comm_abort(C.uintptr_t(t), c, &e), &e)
}
