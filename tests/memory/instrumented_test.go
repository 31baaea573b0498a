//go:build race || asan || msan

package memory

// instrumented says that a checker is built in. It allocates, too; and the race detector performs atomic
// operations in C, where a fault ends the process.
const instrumented = true
