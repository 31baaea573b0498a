// Package tune has rules for choosing the sizes of launches: [LaunchParams2D] for tiles of
// two-dimensional problems, and [AccessPattern], which tells how a list of offsets walks through
// memory. What a device itself says of a kernel is [runtime.Kernel.Occupancy] and
// [runtime.Kernel.SuggestGroup].
package tune
