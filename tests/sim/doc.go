// Package sim has simulated vendor libraries, for tests: libcuda.so.1, libnvrtc.so.11.2 and
// libamdhip64.so.5 with the vendors' binary interfaces, implemented on the host executor of
// csrc/host. `make sim` builds them into build/sim.
//
// # Basics
//
// A program that is written for a vendor's driver runs on them: kernels are compiled by g++ and run
// on the CPU, each stream is a queue with a thread, and memory is allocated between guard pages.
// They report the same errors as real devices, with the vendor's codes: an illegal address, a
// divergent barrier, a launch beyond the limits. An asynchronous error stays until the context is
// reset.
//
// Calls fail on demand, by CONCORD_SIM_FAULT in the environment or by a call of
// concord_sim_control; lib/fault.h lists the words. concord_sim_count returns the number of live
// objects, so that a test can check that all were released. Package control has both functions for
// Go. The backends' own tests use Load, Single and Launch.
//
// The directory new has the libraries of CUDA 13.0 for CONCORD_SIM_DIR: a driver for sm_90 with the versioned functions
// only, an NVRTC that knows no architecture before sm_75 and that fails with code 7 unless the loader finds its
// builtins by their bare name, and cuBLAS 13.
//
// old/libcuda.so.1 is an older driver without the functions of later versions. To test a program
// without one particular function, use a copy of a library in whose string table the function's
// name is changed.
//
// If CONCORD_SIM_COMPILED names a directory, which has to exist, the simulated compilers keep there what g++ made of a
// program, and use what is there instead of running g++: so programs run where there is no compiler. A file is found by
// the program's text and options, whatever the directory's path. Several processes may use one at once.
// CONCORD_SIM_COMPILER is the path of a program to run instead of g++, with the same arguments.
//
// libnccl.so.2 and librccl.so.1 are libraries of collectives for the devices of one process, whose ranks meet in the
// order of their streams; ncclCommAbort ends a rank's wait.
//
// # Caveats
//
// Their speed has no relation to that of real devices. All devices share the host's memory, so a
// kernel that uses another device's memory without peer access works, and so does a host that
// dereferences device memory. The threads of a block run one after the other, each until it waits:
// a thread that spins until another one writes never ends. A block counts as diverged if its
// threads reach different barriers, or if some leave before a barrier; hardware tolerates some of
// these cases. Integer division by zero ends a kernel here but not on a GPU.
package sim
