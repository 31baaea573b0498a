// Package tune has rules for the sizes of launches, for devices that nothing was measured on, and for rates that were
// measured: [SelectTile] divides products of matrices, [LaunchParams2D] other two-dimensional problems,
// [SelectElementwise] elements among groups, and [SelectGrid] elements among as many groups as the device runs.
// [AccessPattern] tells the memory access of a list of offsets, and a [Baseline] whether a rate has become worse. The
// device's own advice for a kernel is [runtime.Kernel.Occupancy] and [runtime.Kernel.SuggestGroup]; package
// runtime/profile computes both by the vendors' rules, without a device.
package tune
