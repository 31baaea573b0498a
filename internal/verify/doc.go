// Package verify shows what a device does, in a limited time, and writes down what was shown.
//
// A plan of steps goes from the most valuable to the least. Each step runs in a process of its own
// with a budget of time: one that hangs, crashes or loses its device costs no other step anything,
// and is started again behind the check that ended it while its budget lasts. The report is on disk
// after every step.
//
// [Run] is the parent: it starts the processes, reads their records and writes the report. [Child] is
// what such a process does. A process gets its job as one line on its standard input, which stays
// open as long as its parent lives, and writes records, one JSON object a line, to its output.
//
// The parent opens no device. It keeps the clock: a process that exceeds its time is killed, with all that it
// started. Records are the check that begins, its verdict, or a rate. A process ends by itself when its input
// does, which is when the parent is gone.
//
// The checks are those of the tests: the rows of runtime/conformance, the catalog through runtime/parity, and
// the cases in the packages golden and stress. Each is a function that returns what is wrong.
package verify
