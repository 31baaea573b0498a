// Package profile says what kernels could reach and what they did. It knows how many groups a compute unit runs at a
// time, how near a launch came to the limits of its device, and where the time went.
//
// # Occupancy
//
// [LimitsOf] has what a compute unit of an architecture offers, and [DeviceLimits] of an open device.
// [Occupancy] and [BestGroup] compute from them, and from what a compiler reports about a kernel,
// how many groups run at a time; they need no device. The rules are those that the vendors publish:
//
//	l, err := profile.LimitsOf("sm_90", 0)
//	fmt.Println(profile.Occupancy(l, profile.Request{Registers: 40}, 256)) // 6 groups of 256 items, …
//
// # Rooflines
//
// A [Roof] has the measured rates of a device, and [Roof.Limit] the least time of some work under it.
// Package runtime/roof measures it once per device and driver.
//
// # Events
//
// An [Event] is something that happened: a launch, a copy, a compile, a wait. A [Recording] is an [Observer] that
// keeps the newest of them. [Summarize] says what took the time and what could be done about it; [WriteTrace] writes
// them for Perfetto and Chrome, and [WriteHTML] as a page. What is not known stays unknown: work that nobody stated
// gives no rates, and no share of a roof.
//
// Session.Observe of package runtime tells an Observer what happens on its devices. A program that measures work of
// its own calls Recording.Observe, with times of driver.Now.
//
// Functions and values of this package may be used by any number of goroutines, except where their
// documentation says otherwise.
package profile
