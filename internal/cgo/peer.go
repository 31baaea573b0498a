//go:build cgo && unix

package cgo

// Copies between devices of one library.

import "github.com/concord-compute/concord/runtime/driver"

// CanCopyFrom implements driver.PeerCopier.
func (d *device) CanCopyFrom(peer driver.Device) (can, direct bool) {
	from, ok := peer.(*device)
	if !ok || from == d || from.t != d.t || from.lib.c != d.lib.c {
		return false, false
	}
	if d.enter("peer") != nil {
		return false, false
	}
	defer d.leave()
	if from.enter("peer") != nil {
		return false, false
	}
	defer from.leave()
	direct, f := d.t.peer(d.c, from.c, false)
	return f == nil, direct && f == nil
}

// CopyFrom implements driver.PeerCopier. The first copy between two devices enables direct access
// if they are capable of it.
func (d *device) CopyFrom(on driver.Stream, dst driver.Memory, peer driver.Device, src driver.Memory) error {
	const op = "copy from a peer"
	s, ok := on.(*stream)
	if !ok || s.d != d {
		return d.errorf(op, driver.ErrInvalidArgument, "stream is a %T, or one of another device", on)
	}
	from, ok := peer.(*device)
	if !ok || from.t != d.t || from.lib.c != d.lib.c {
		return d.errorf(op, driver.ErrInvalidArgument, "the peer is a %T, or of another library", peer)
	}
	if err := from.enter(op); err != nil {
		return err
	}
	defer from.leave()
	if err := s.enter(op); err != nil {
		return err
	}
	d.allow(from)
	return s.queued(op, s.t.copyPeer(s.c, d.c, address(dst), from.c, address(src), src.Size))
}

// allow enables direct access once. Without it the driver stages the copy. The caller has entered
// both devices.
func (d *device) allow(from *device) {
	d.mu.Lock()
	_, known := d.reach[from]
	d.mu.Unlock()
	if known || from == d {
		return
	}
	direct, f := d.t.peer(d.c, from.c, true)
	d.mu.Lock()
	d.reach[from] = direct && f == nil
	d.mu.Unlock()
}
