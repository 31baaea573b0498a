// Package tune has rules for the sizes of launches: [LaunchParams2D] for tiles of two-dimensional
// problems, and [AccessPattern] for the memory access of a list of offsets. The device's own advice
// for a kernel is [runtime.Kernel.Occupancy] and [runtime.Kernel.SuggestGroup]; package
// runtime/profile computes both by the vendors' rules, without a device.
package tune
