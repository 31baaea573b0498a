// Package mempool keeps device memory for reuse. It stands between the buffers of a program and the
// driver, whose allocate and free are slow and often wait for the device.
//
// # Blocks
//
// [Pool.Get] hands out a block, [Pool.Put] takes it back. A block that is put back while queued
// work still uses it is marked with that work: its [Lane] and the lane's count at that point. The
// same lane can reuse the block at once, since its later work comes after. Other requests can reuse
// it when the lane has passed the mark.
//
// # Modes
//
// [Split] is for devices where memory can be used at any offset: blocks are cut from slabs, best
// fit first, the rest stays free, and free neighbours are joined. Small and large blocks have
// separate slabs, so that a long-lived small block does not break up a large range. [Whole] is for
// memory that must be used as it was allocated: blocks have the size of their class. [Exact] reuses
// a block for requests of the same size only: a block ends where its allocation ends, so that a
// driver that detects overruns finds them. [PassThrough] keeps nothing.
//
// # Accounts
//
// Reserved = Live + Cached at every moment, and Reserved is the memory allocated from the driver.
// [Pool.Stats] is one consistent picture. Live blocks never move, and clean-ups do not touch them.
//
// # Pressure and traces
//
// [Pool.Watch] reports when live memory crosses parts of the soft limit; [Pool.Maintenance] gives
// back unused memory. A [Recorder] keeps the operations of pools as a [Trace], which can be
// written, replayed with other settings and without a device, laid out as an [Arena] and analyzed.
//
// A Pool is safe for concurrent use. It calls the driver without holding its lock, so that a
// request served from kept memory does not wait for one that needs the driver.
package mempool
