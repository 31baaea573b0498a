// Package quant stores matrices in few bits per number: ternary weights, blocks of 4 and 8 bits, and the formats
// of files in which others have such weights.
//
// # Basics
//
// A [Layout] names a [Format], a shape and, for some formats, parameters. [New] makes the memory of a [Matrix],
// [Encode] fills it, [Decode] computes its numbers, [Validate] checks what came from elsewhere, and [Measure]
// compares numbers with what they became. [Pack] does the first two for rows of any length: it pads them with
// zeros to whole groups, and the matrix knows the length that was meant.
//
// A format is named by the caller or by a file's metadata, and never guessed from a size: several of them have
// equal sizes. Formats describes all; [ParseFormat] reads a name.
//
// # Ternary weights
//
// The formats for trained ternary weights store the numbers -s, 0 and s as they are and refuse others, since they
// would be wrong by half of s. [Scale] and [Ternary] make such numbers of any weights by a [Method].
//
// # Products
//
// [Prepare] copies ternary weights to a device in the layout that its products read, whatever their format, and [Prepared.Mul]
// multiplies rows of activations with them. The activations are rounded to bytes as [Activations] does it, and sums of products are exact integers, so that
// all devices differ by the rounding of three floats at most. Weights of other formats have to be decoded.
//
// # Accounts
//
// A [Quantizer] does all of this for one device under a context, a budget of memory and the session's policy of fallbacks, and knows
// what ran where: its Stats and its Receipt are those of package accounts. Encoding and decoding is work of the host on
// every device, and counts as that; products run on the device. The device is that of [runtime.Open], where "auto" is the best one.
//
// # Bytes
//
// All implementations, which are vector instructions and Go, write the same bytes and decode the same bits.
// Arithmetic is that of float32 without fused operations; halves are rounded away from zero in weights, and to
// even in activations. A NaN or an infinity in the input is driver.ErrNumerical and says where it is, as is a
// scale that is too large for its format.
//
// The functions use all processors for large matrices. They do not block otherwise, keep nothing, and may be called
// from any goroutine.
package quant
