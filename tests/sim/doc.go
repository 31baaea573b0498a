// Package sim is about simulated vendor libraries, for tests: libcuda.so.1,
// libnvrtc.so.11.2 and libamdhip64.so.5 with the vendors' own binary interfaces, over
// the host executor of csrc/host. `make sim` builds them into build/sim.
//
// # Basics
//
// A program that is written for a vendor's driver runs on them: kernels are compiled
// by g++ and run on the processor, streams are queues with a thread each, memory
// stands between guards. What a real device reports they report: an illegal address,
// a divergent barrier, a launch beyond the limits, each with the vendor's number, and
// an asynchronous error stays until the context is reset.
//
// They fail on demand, by CONCORD_SIM_FAULT in the environment or by a call of
// concord_sim_control; lib/fault.h lists the words. concord_sim_count tells what is alive,
// so a test can demand that nothing was left behind. Package control is that from Go.
// The backends' own tests of them begin with Load, Single and Launch.
//
// old/libcuda.so.1 is an older driver: functions that came late are missing. Whether a
// program gets along without one particular function shows on a copy of a library in
// whose table of strings that name has been changed.
//
// # Caveats
//
// Nothing here says anything about speed. All devices share the host's memory, so a
// kernel that uses another device's memory without asking works, as does a host that
// dereferences device memory. Threads of a block run in turn, up to where they wait:
// one that spins until another one writes never ends. A block counts as diverged when
// its threads reach different barriers, or some leave before one; hardware forgives
// some of that. Integer division by zero ends a kernel here and does not on a GPU.
package sim
