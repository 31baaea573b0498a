// Package mpi makes the processes that an MPI launcher has started one group, with a device each. It opens the MPI
// library that the machine has, when a program asks for it: building needs no MPI.
//
// # Basics
//
// Every process of a job calls [Group], which returns its part of the group.
//
//	mpirun -np 4 ./program
//
//	g, err := mpi.Group(ctx, dev)
//	defer g.Close()
//	err = g.Do(ctx, step) // for this process's one member
//
// [Init] instead returns the [Job]: its rank, the number of processes, and a link to the others.
//
// Open MPI and libraries with MPICH's binary interface are supported; which one it is shows only when it is opened.
// [Init] prefers the library that belongs to the launcher. CONCORD_MPI_LIBRARY or [Options] name another one.
// Without cgo, and on processors other than amd64 and arm64, Init returns [runtime.ErrUnsupported].
//
// # Exchanges
//
// Of the library's functions for messages, only sending to and receiving from one process are used (MPI_Isend and
// MPI_Irecv), so that all arithmetic is Concord's, and its results have the same bits whatever the library. A message
// goes in pieces, as many as it needs. The library is called by one goroutine at a time, of any thread
// (MPI_THREAD_SERIALIZED). An exchange that waits gives way to other processes, and later sleeps for moments, so that
// there may be more processes than processors.
//
// # Failures
//
// Processes watch each other: each sends a beat to the next one, and reports to all when the one before it is silent.
// A process that was killed, a broken connection, and a process that leaves or does not come to an exchange end the
// job: every exchange, on every process that is left, returns a [*cluster.MemberError] with the rank to blame.
// A launcher ends all processes when one of them fails, unless told otherwise; docs/mpi.md has the options for that.
//
// # Caveats
//
// MPI can be started once in a process, and not again after [Job.Close]. Init refuses an MPI that another part of the
// program has started: it could not keep the calls of both apart. Another part cannot use it after Init either, since
// the job calls the library from a goroutine of its own. Init puts the handlers of signals back that the libraries
// replace, since Go needs its own. After an error, a network card may use the memory of an exchange until the process
// ends, if the library does not take the message back.
package mpi
