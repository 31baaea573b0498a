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
package verify
