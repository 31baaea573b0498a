// Package choice has the numbers that were chosen by measuring: the sizes of blocks, the thresholds between two ways
// to compute the same. Each is a [Choice] with a name, a meaning, a default, and the
// values that are worth trying, registered by the package that reads it. A [Set] has the values that a device uses,
// and a [Table] is a set that was measured on a processor or card, with what it holds for. Package runtime/tune
// measures tables; a session gives every device the one that fits it.
//
// A program reads and sets the choices of a device by runtime.Device's Choices and KeepTuned:
//
//	fmt.Println(dev.Choices().TunedFor(), dev.Choices().Table())
//
// No choice changes what is computed. Those with Rounds change the order in which numbers are added, and with it the
// last bits: two runs with the same table give the same bits.
package choice
