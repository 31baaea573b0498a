// Package mempool keeps device memory for reuse: between the buffers of a program and
// the driver, whose allocate and free are slow and often wait for the device.
//
// # Blocks
//
// [Pool.Get] hands out a block, [Pool.Put] takes it back. A block that comes back
// while work that uses it is still queued is marked with that work: the [Lane] it is
// on, and the lane's count at that point. On the same lane it is reused at once, since
// later work there comes after; for everyone else when the lane has passed the mark.
//
// # Modes
//
// Where memory may be used at any offset ([Split]) blocks are cut from slabs: best fit,
// the rest stays free, neighbours that are free become one again. Small and large
// blocks have slabs of their own, so that a small one that lives long does not keep
// a large range from being whole. Where memory is used as it was allocated ([Whole])
// blocks have the size of their class. [Exact] reuses a block for the same size only:
// nothing is behind a block's end but what the driver puts there, so that an overrun
// is found where the driver finds overruns. [PassThrough] keeps nothing.
//
// # Accounts
//
// Reserved = Live + Cached at every moment, and what the driver says is allocated is
// Reserved. [Pool.Stats] is one consistent picture. Live blocks never move and are never
// touched by a clean-up.
//
// # Pressure and traces
//
// [Pool.Watch] tells when live memory passes parts of the soft limit; [Pool.Maintenance]
// gives back what nobody uses. A [Recorder] keeps what pools do as a [Trace], which can
// be written, replayed with other settings and without a device, laid out as an [Arena]
// and analyzed.
//
// A Pool is safe for concurrent use. It calls the driver without holding its lock, so
// that who is served from the cache does not wait for one who is not.
package mempool
