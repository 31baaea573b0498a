package kernels

// What the family nearest offers beside its kernels: functions on the host, by which a search compares a few
// vectors in less time than a launch takes. A backend whose devices are the host's processor offers them as
// methods of its devices.

// Ranker is implemented by devices of package runtime/driver that are the host's processor: they compute some distances
// on the calling goroutine, without a launch, for searches in graphs of neighbours, which need a few dozen at a time.
type Ranker interface {
	// Rank sets the distances of a ranking, as the kernel nearest of the catalog computes them on the device. It
	// returns false, for every ranking, if the device cannot. It checks nothing, does not block, may be called
	// from several goroutines at once, and must not be called after Close.
	Rank(r *Ranking) bool
}

// Ranking has the arguments of [Ranker]: the distances of listed rows from one query. The slices of a ranking
// have to be outside of Go's heap: memory of the device, or wrapped.
type Ranking struct {
	Metric    string    // l2, ip or cosine
	Type      string    // of the elements of Vectors: f32, f16, bf16 or i8
	Dim       int       // elements of a row, at least 1
	Query     []byte    // begins with the query: elements of Type, or f32 for a Type of 16 bits
	Vectors   []byte    // all rows
	Rows      []uint32  // the numbers of the rows to compare, each below the number of rows in Vectors
	Distances []float32 // the results, as many as Rows
	Bound     float32   // if above 0, a squared distance above it may be set to infinity
}

// CodeRanker is implemented by the same devices: on the calling goroutine, without a launch, they make and
// compare codes of vectors, of which a search reads many thousands for each query (product quantization). They
// check nothing, do not block, may be called from several goroutines at once, and must not be called after
// Close. The same arguments give the same bits on every such device. All slices have to be outside of Go's
// heap: memory of the device, or wrapped.
type CodeRanker interface {
	// EncodeRows sets the codes of points, which are side by side: in each part the first of the 16 values that
	// are nearest, and the first of all where a component is NaN.
	EncodeRows(b *CodeBook, points []float32, codes []byte)
	// CodeTable sets a table of b.TableSize() bytes for a point, and returns its numbers: for each part the
	// squared distances from its 16 values are base_p + step·t, rounded, where t is a byte of the table from 0 to
	// 127, and base is the sum of all base_p. One of them is not finite if a distance is not.
	CodeTable(b *CodeBook, point []float32, table []byte) (base, step float32)
	// RankCodes finds those of the first n vectors in blocks, at most 65536, for which the sum of a table's bytes
	// is at most limit, from 0 to 32767. It sets found, which has room for n+1, and returns the part of it that
	// has the results, for each of them place·65536 + sum, in the order of places.
	RankCodes(b *CodeBook, table, blocks []byte, n, limit int, found []uint32) []uint32
}

// CodeBook says what codes mean. A code has 4 bits for each of 2·Bytes parts of a vector. Part p is the
// components from p·Dim/(2·Bytes) up to (p+1)·Dim/(2·Bytes), and has the bits from 4·(p mod 2) on of byte p/2.
// A block has the codes of [CodeBlock] vectors: the first bytes of all, then the second ones, and so on.
type CodeBook struct {
	Dim, Bytes int       // components of a vector, at least 2·Bytes, and bytes of a code, up to 128
	Values     []float32 // 16 for each component: those for the codes of its part
}

// CodeBlock is the number of vectors in a block of codes.
const CodeBlock = 64

// TableSize returns the number of bytes of a table: 16 for each part, and 8.
func (b *CodeBook) TableSize() int { return 32*b.Bytes + 8 }

// Part returns the first component of a part; that of part 2·Bytes is Dim.
func (b *CodeBook) Part(p int) int { return p * b.Dim / (2 * b.Bytes) }
