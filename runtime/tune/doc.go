// Package tune measures which values of a device's choices (package runtime/choice) are the fastest, and has rules
// where nothing was measured.
//
// # Basics
//
// [Run] looks for values that are better than the defaults, and [runtime.Device.KeepTuned] keeps them for this and
// later sessions. The command concord tune does both. Candidates run in processes of their own, which call [Serve]:
//
//	unlock, err := tune.Lock(ctx, dev, nil)
//	if err != nil {
//		return err
//	}
//	defer unlock()
//	table, err := tune.Run(ctx, dev, tune.Options{Command: self, Time: 5 * time.Minute})
//	if err == nil {
//		err = dev.KeepTuned(ctx, dev.Choices().Merged(dev.TuneTarget().Tuned(), table))
//	}
//
// [Subjects] are the operations that are measured; [Register] adds one. The subject costs is no search: it measures
// what a launch, a copy, an element and an operation take, and its values are the costs by which package tensor plans
// on the device.
//
// # At first use
//
// A program whose main begins with [FirstUse] can tune what it uses, in the background and for its next process, and
// nobody has to call Run: with CONCORD_TUNE=first, or
//
//	func main() {
//		tune.FirstUse()
//		session, err := runtime.New(runtime.Config{Tune: driver.TuneFirst})
//		...
//	}
//
// # Rules
//
// [SelectTile] divides products of matrices, [LaunchParams2D] other two-dimensional problems, [SelectElementwise]
// elements among groups, and [SelectGrid] elements among as many groups as the device runs. [AccessPattern] tells the
// memory access of a list of offsets, and a [Baseline] whether a rate has become worse. The device's own advice for a
// kernel is [runtime.Kernel.Occupancy] and [runtime.Kernel.SuggestGroup]; package runtime/profile computes both by
// the vendors' rules, without a device.
package tune
