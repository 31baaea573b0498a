// Package quant stores matrices in few bits per number: ternary weights, blocks of 4, 6 and 8 bits, and the formats
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
// [Prepare] copies weights to a device in the layout that its products read, and [Prepared.Mul] multiplies rows
// of activations with them. The activations are rounded to bytes in the same work, and sums of products are
// exact integers. Weights are either ternary with one scale for a row, in any format, of
// formats whose [Format.ProductBlock] is not 0. Others have to be decoded.
//
// Ternary: a row of activations is rounded as [Activations] does it, so that all devices differ by the rounding
// of three floats at most.
//
// Blocks: a block of 32 activations x, which is padded with zeros, has m = max(max|x|, 1e-5), the bytes q =
// round(x·(127/m)), halves to even, and the scale m·(1/127), each operation being one of float32. A block of 32 weights
// has a scale d and whole numbers w, which in Q6_K are codes times the factors of their halves. A result is the sum of
// float32(Σ w·q)·(d·scale) over the blocks of a row, from zero, in float32 and in their order. In Q4_K, with the
// factors f and g of a block, it is that of (float32(Σ w·q)·(d·f) - float32(Σ q)·(min·g))·scale. So it is on cpu:0,
// with the same bits in all instruction sets, and on cpu:reference. Other devices add in another order, and their
// results differ by at most (2·blocks + 9)·2^-24 times the sum of the magnitudes of what is added. A block with a NaN
// or an infinity has the scale NaN.
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
