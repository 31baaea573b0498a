//go:build cgo && unix

package cgo

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
	"github.com/concord-compute/concord/tests/sim/null"
)

// session uses every entry of the table, goes on after errors as far as it can,
// and returns them.
func session(unit *source.Unit) (errs []error) {
	note := func(err error) bool {
		if err != nil {
			errs = append(errs, err)
		}
		return err == nil
	}
	open := func(index int) *device {
		d, err := NewBackend(vendor()).Open(ctx, index, nil)
		if !note(err) {
			return nil
		}
		return d.(*device)
	}
	d, peer := open(0), open(1)
	for _, d := range []*device{d, peer} {
		if d != nil {
			defer func() { note(d.Close()) }()
		}
	}
	if d == nil {
		return errs
	}
	note(d.UsePipelines([]byte{1}))
	_, err := d.Pipelines()
	note(err)
	k := loaded(d, unit, note)
	if k != nil {
		_, err := d.Occupancy(k, 64, 0)
		note(err)
		_, err = d.SuggestGroup(k, 0)
		note(err)
	}
	s, err := d.NewStream()
	if !note(err) {
		return errs
	}
	x, err := d.Alloc(64, driver.OnDevice)
	if !note(err) {
		return errs
	}
	p, err := d.Alloc(64, driver.Pinned)
	if !note(err) {
		return errs
	}
	cs := s.(*stream)
	note(s.Upload(ctx, x, make([]byte, 64)))
	note(s.Copy(x, x))
	note(s.Fill(x, []byte{1}))
	note(cs.UploadPinned(x, p))
	note(cs.DownloadPinned(p, x))
	note(cs.Prefetch(p, true))
	if here, err := cs.AllocHere(64); note(err) {
		note(cs.FreeHere(here))
	}
	if k != nil {
		note(s.Launch(launchOf(k, x, x)))
	}
	if k, ok := d.Native(productUnit("f32"), "gemm"); ok {
		note(s.Launch(productOf(k, x)))
	}
	if id, err := d.CommunicatorID(); note(err) {
		if c, err := d.NewCommunicator(ctx, id, 0, 1); note(err) {
			note(c.Queue(ctx, s, &driver.Collective{Type: driver.F32, Dst: x, Src: x}))
			note(c.Err())
			note(c.Close())
		}
	}
	if e, err := s.Record(false); note(err) {
		note(e.Wait(ctx))
		note(e.Close())
	}
	if e, err := s.Record(true); note(err) {
		note(s.Wait(e))
		_, err = e.Done()
		note(err)
		note(e.Wait(ctx))
		_, err = e.Elapsed(e)
		note(err)
		note(e.Close())
	}
	if note(cs.BeginCapture()) {
		note(cs.DropCapture())
	}
	if note(cs.BeginCapture()) {
		if g, err := cs.EndCapture(nil); note(err) {
			note(g.Launch(s))
			note(g.Close())
		}
	}
	if peer != nil {
		d.CanCopyFrom(peer)
		if y, err := peer.Alloc(64, driver.OnDevice); note(err) {
			note(d.CopyFrom(s, x, peer, y))
			note(peer.Free(y))
		}
	}
	note(s.Download(ctx, make([]byte, 64), x))
	note(s.Sync(ctx))
	note(s.Err())
	note(s.Close())
	note(d.Free(x))
	note(d.Free(p))
	if k != nil {
		note(k.(*kernel).m.Close())
	}
	return errs
}

// loaded returns a kernel of the unit, or nil.
func loaded(d *device, unit *source.Unit, note func(error) bool) driver.Kernel {
	bin, err := d.Compile(ctx, unit, nil)
	if !note(err) {
		return nil
	}
	m, err := d.Load(ctx, unit, bin)
	if !note(err) {
		return nil
	}
	k, err := m.Kernel("saxpy")
	note(err)
	return k
}

// entries are those that can fail.
var entries = []string{"lib_open", "versions", "device_count", "device_info", "targets", "compile", "device_open",
	"device_close", "mem_alloc", "mem_free", "module_load", "module_unload", "module_kernel", "occupancy", "suggest",
	"stream_new", "stream_close", "alloc_on", "free_on", "upload", "download", "upload_pinned", "download_pinned", "copy",
	"copy_peer", "fill", "prefetch", "launch", "stream_wait", "stream_query", "stream_sync", "record", "event_query",
	"event_wait", "event_elapsed", "capture_begin", "capture_end", "capture_drop", "graph_launch", "graph_close",
	"blas_open", "gemm", "comm_id", "comm_join", "comm_queue", "comm_state", "comm_abort", "pipelines_put",
	"pipelines_get"}

// quiet reports whether a failure need not be returned: a version that stays unknown, a missing
// BLAS, the second name of a kernel, memory that cannot be freed on a lost device.
func quiet(entry string, s status) bool {
	closing := []string{"device_close", "mem_free", "module_unload", "stream_close", "free_on", "graph_close",
		"comm_abort"}
	return entry == "versions" || entry == "blas_open" || s == statusNotFound && entry == "module_kernel" ||
		s == statusLost && slices.Contains(closing, entry)
}

// Every entry fails once, at each of its calls and with each status: the error matches a sentinel,
// and nothing leaks.
func TestSweep(t *testing.T) {
	reset(t)
	unit := parse(t, saxpyText)
	require.Empty(t, session(unit), "without a fault")
	calls := map[string]int{}
	for _, entry := range entries {
		calls[entry] = null.Calls(entry)
		require.NotZero(t, calls[entry], "%s is not called by the session", entry)
	}
	count := 0
	for _, entry := range entries {
		for n := range calls[entry] {
			for s := statusFailed; s <= statusLost; s++ {
				null.Reset()
				null.Fail(entry, n, int(s))
				errs := session(unit)
				if !quiet(entry, s) {
					require.NotEmpty(t, errs, "%s, call %d, status %d: no call returned an error", entry, n, s)
				}
				for _, err := range errs {
					var op *driver.OpError
					var built *driver.BuildError
					require.True(t, errors.As(err, &op) || errors.As(err, &built), "%s: %T %v", entry, err, err)
				}
				require.Empty(t, null.Live(), "%s, call %d, status %d: %v", entry, n, s, errs)
				count++
			}
		}
	}
	t.Logf("%d pairs of call and status", count)
	assert.Greater(t, count, 500)
}
