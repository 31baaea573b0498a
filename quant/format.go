package quant

// The formats, in one table.

import (
	"fmt"
	"strings"

	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/driver"
)

// Format is one way to store numbers in few bits.
type Format uint8

// The formats. Formats that end in M1 to M4, and MTL1 and MTL2, are those of Microsoft's inference engine for ternary
// weights. Those with an underscore and a digit and the K formats are ggml's, and those with R are BitNet.rs's.
const (
	I2SM1  Format = iota + 1 // groups of 128 in 32 bytes, the first 32 numbers in the top bits; x86
	I2SM2                    // groups of 64 in 16 bytes, likewise; ARM
	I2SM3                    // four rows in a byte, which this package reads only
	W2A8M4                   // tiles of 16 × 32, for GPUs; a bfloat16 scale per Layout.Block rows, or one
	TQ10                     // TQ1_0: 256 numbers in 54 bytes
	TQ20                     // TQ2_0: 256 numbers in 66 bytes
	Q40                      // Q4_0: 32 numbers in 18 bytes
	Q80                      // Q8_0: 32 numbers in 34 bytes
	Q4K                      // Q4_K: 256 numbers in 144 bytes
	Q6K                      // Q6_K: 256 numbers in 210 bytes
	I2SB                     // four numbers in a byte, a scale per 128 or 32; the default of ternary blocks
	RA                       // blocks of 32 with a scale, -2 to 1
	RB                       // blocks of 32 with a scale, -1 to 1
	MTL1                     // tables of pairs, with Layout.Tile; ARM
	MTL2                     // tables of triples and pairs, with Layout.Tile; x86
	RTL1K                    // blocks of 64, four fixed levels
	RTL2K                    // blocks of 128, four other levels
	RTL1Q                    // blocks of 64, four even levels
	RTL2Q                    // blocks of 64, 128 or 256, four even levels
	I8Rows                   // bytes, a scale per row
	I8All                    // bytes, one scale
	Q50                      // Q5_0: 32 numbers in 22 bytes
	Q5K                      // Q5_K: 256 numbers in 176 bytes
)

// codec is what one format does. Numbers are stored in groups, which do not depend on each other.
type codec struct {
	name, about string
	// group returns the numbers of a group, its bytes and its scales, for parameters that check has accepted.
	group func(l Layout) (numbers, bytes, scales int)
	check func(l Layout) error // nil: Block and Tile have to be zero
	short bool                 // the last group may have fewer numbers, and bytes for them only
	cross bool                 // groups do not begin with rows
	tail  bool                 // one scale for all, behind the groups, in 32 bytes of which 28 are zero

	encode func(l Layout, to codes, x []float32) error  // of whole groups; nil: this package reads only
	decode func(l Layout, x []float32, from codes)      // likewise
	bad    func(l Layout, from codes) (at int, ok bool) // the byte that is no code; nil: all are

	vector  vectors  // what the vector functions do
	quarter *quarter // of such formats
	block   *block   // likewise
	form    []int32  // of block, as the vector functions know it
}

// vectors are the vector functions of a format; 0 where Go does it.
type vectors struct{ encode, decode simd.Op }

// codes are the bytes and scales of some groups.
type codes struct {
	data   []byte
	scales []float32
	scale  float32 // of the tensor, in formats with a tail
}

// fixed is the group of formats without parameters.
func fixed(numbers, bytes, scales int) func(Layout) (int, int, int) {
	return func(Layout) (int, int, int) { return numbers, bytes, scales }
}

var codecs = [...]codec{
	I2SM1: {name: "I2S_M1", about: "ternary, x86: 128 in 32 bytes, one scale at the end", group: fixed(128, 32, 0),
		cross: true, tail: true,
		encode: encodeInterleaved, decode: decodeInterleaved, bad: badInterleaved,
		vector: vectors{simd.QuantInterleavedEncode, simd.QuantInterleavedDecode}},
	I2SM2: {name: "I2S_M2", about: "ternary, ARM: 64 in 16 bytes, one scale at the end", group: fixed(64, 16, 0),
		cross: true, tail: true,
		encode: encodeInterleaved, decode: decodeInterleaved, bad: badInterleaved,
		vector: vectors{simd.QuantInterleavedEncode, simd.QuantInterleavedDecode}},
	I2SM3: {name: "I2S_M3", about: "ternary: four rows in a byte, one scale at the end; read only", group: groupFourRows,
		check: checkFourRows, cross: true, tail: true,
		decode: decodeInterleaved, bad: badInterleaved, vector: vectors{decode: simd.QuantInterleavedDecode}},
	W2A8M4: {name: "W2A8_M4", about: "ternary, GPU: tiles of 16 × 32, scales apart", group: groupTiles, check: checkTiles,
		cross:  true,
		encode: encodeTiles, decode: decodeTiles, bad: badTiles},
	TQ10: {name: "TQ1_0", about: "ternary: 256 in 54 bytes with a scale", group: fixed(256, 54, 0), encode: encodeTQ1,
		decode: decodeTQ1, bad: badTQ1, vector: vectors{simd.QuantTQ1Encode, simd.QuantTQ1Decode}},
	TQ20: block{name: "TQ2_0", about: "ternary: 256 in 66 bytes with a scale", numbers: 256, bytes: 66,
		less: 1, ternary: true, scale: 64, planes: []plane{{at: 0, bits: 2, run: 32}}, fit: fitTrits,
		loop: getQuarters}.codec(),
	Q40: block{name: "Q4_0", about: "4 bits: 32 in 18 bytes with a scale", numbers: 32, bytes: 18, less: 8, scale: 0,
		planes: []plane{{at: 2, bits: 4, run: 16}}, fit: fitNibbles,
		loop: getNibbles}.codec(),
	Q80: block{name: "Q8_0", about: "8 bits: 32 in 34 bytes with a scale", numbers: 32, bytes: 34, signed: true, less: 128,
		scale: 0, planes: []plane{{at: 2, bits: 8, run: 32}}, fit: fitMost, loop: getBytes}.codec(),
	Q4K: block{name: "Q4_K", about: "4 bits: 256 in 144 bytes, eight scales and minima", numbers: 256, bytes: 144,
		scale: 0, rule: kernels.GemmQLeast, factors: 4, planes: []plane{{at: 16, bits: 4, run: 32}},
		fit: fit{choose: lines{first: -1, tries: 21}.search}}.codec(),
	Q6K: block{name: "Q6_K", about: "6 bits: 256 in 210 bytes, sixteen scales", numbers: 256, bytes: 210, less: 32,
		scale: 208, rule: kernels.GemmQHalves, factors: 192,
		planes: []plane{{at: 0, bits: 4, run: 64}, {at: 128, bits: 2, run: 32}}, fit: fit{choose: searchHalves}}.codec(),
	Q50: block{name: "Q5_0", about: "5 bits: 32 in 22 bytes with a scale", numbers: 32, bytes: 22, less: 16, scale: 0,
		planes: []plane{{at: 6, bits: 4, run: 16}, {at: 2, bits: 1, run: 1}}, fit: fitTop}.codec(),
	Q5K: block{name: "Q5_K", about: "5 bits: 256 in 176 bytes, eight scales and minima", numbers: 256, bytes: 176,
		scale: 0, rule: kernels.GemmQLeast, factors: 4,
		planes: []plane{{at: 48, bits: 4, run: 32}, {at: 16, bits: 1, run: 32}},
		fit:    fit{choose: lines{first: -0.5, tries: 16}.search}}.codec(),
	I2SB: quarter{name: "I2S_B", about: "ternary: blocks of 128 or 32, scales apart", blocks: []int{128, 32},
		levels: [4]float32{-1, 0, 1, 0}, invalid: 3, scale: absmax, code: nearestTrit, kind: kindTrits}.codec(),
	RA: quarter{name: "R_A", about: "BitNet.rs: blocks of 32, codes -2 to 1, scales apart", blocks: []int{32},
		levels: [4]float32{-2, -1, 0, 1}, invalid: none, scale: absmax, code: nearestFromTwo, kind: kindFromTwo}.codec(),
	RB: quarter{name: "R_B", about: "BitNet.rs: blocks of 32, codes -1 to 1, scales apart", blocks: []int{32},
		levels: [4]float32{0, 1, 0, -1}, invalid: 2, scale: absmaxOfOneAndAHalf, code: aboveHalf, kind: kindHalves}.codec(),
	MTL1: {name: "MTL1", about: "ternary, ARM: tables of pairs, one scale at the end; needs a tile", group: groupMTL1,
		check: checkMTL1, cross: true, tail: true,
		encode: encodeMTL1, decode: decodeMTL1, bad: badMTL1},
	MTL2: {name: "MTL2", about: "ternary, x86: tables of triples and pairs, one scale at the end; needs a tile",
		group: groupMTL2, check: checkMTL2, cross: true, tail: true,
		encode: encodeMTL2, decode: decodeMTL2, bad: badMTL2},
	RTL1K: quarter{name: "R_TL1K", about: "BitNet.rs: blocks of 64, levels 0.33 and 1", blocks: []int{64},
		levels: [4]float32{-1, -0.33, 0.33, 1}, invalid: none, scale: absmaxOfOneAndAHalf, code: nearestLevel,
		kind: kindLevels}.codec(),
	RTL2K: quarter{name: "R_TL2K", about: "BitNet.rs: blocks of 128, levels 0.4 and 1.2", blocks: []int{128},
		levels: [4]float32{-1.2, -0.4, 0.4, 1.2}, invalid: none, scale: absmaxOfOneAndAHalf, code: nearestLevel,
		kind: kindLevels}.codec(),
	RTL1Q: quarter{name: "R_TL1Q", about: "BitNet.rs: blocks of 64, even levels, from zero or not", blocks: []int{64},
		levels: [4]float32{0, 1, 2, 3}, invalid: none, zeros: true, scale: evenLevels, code: nearestEven,
		kind: kindEven}.codec(),
	RTL2Q: quarter{name: "R_TL2Q", about: "BitNet.rs: blocks of 64, 128 or 256 (to be said), even levels",
		blocks: []int{0, 64, 128, 256},
		levels: [4]float32{0, 1, 2, 3}, invalid: none, zeros: true, scale: evenLevels, code: nearestEven,
		kind: kindEven}.codec(),
	I8Rows: {name: "I8_ROWS", about: "bytes, a scale per row apart", group: func(l Layout) (int, int, int) {
		return l.Cols, l.Cols, 1
	},
		encode: encodeBytes, decode: decodeBytes,
		vector: vectors{simd.QuantBytesEncode, simd.QuantBytesDecode}},
	I8All: {name: "I8_TENSOR", about: "bytes, one scale apart", group: func(l Layout) (int, int, int) {
		return l.Rows * l.Cols, l.Rows * l.Cols, 1
	}, cross: true,
		encode: encodeBytes, decode: decodeBytes,
		vector: vectors{simd.QuantBytesEncode, simd.QuantBytesDecode}},
}

// codec returns the format's row of the table, or nil for a number that is none.
func (f Format) codec() *codec {
	if f == 0 || int(f) >= len(codecs) {
		return nil
	}
	return &codecs[f]
}

// String returns the format's name, such as "TQ1_0", or "Format(99)" for a number that is no format.
func (f Format) String() string {
	if c := f.codec(); c != nil {
		return c.name
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// About returns one line about the format.
func (f Format) About() string {
	if c := f.codec(); c != nil {
		return c.about
	}
	return ""
}

// ReadOnly reports whether the package decodes the format and does not encode it.
func (f Format) ReadOnly() bool { c := f.codec(); return c != nil && c.encode == nil }

// Formats returns all formats in the order of their constants.
func Formats() []Format {
	list := make([]Format, 0, len(codecs)-1)
	for f := Format(1); int(f) < len(codecs); f++ {
		list = append(list, f)
	}
	return list
}

// manifold are names that say too little, with what they may mean, and names of layouts that are refused.
var manifold = []struct {
	name, means string
	err         error
}{
	{"I2_S", "it names many layouts: say I2S_M1 (x86), I2S_M2 (ARM), I2S_M3 (rows interleaved) or I2S_B (blocks)",
		driver.ErrFormat},
	{"TL1", "it names two families: say MTL1 (Microsoft's), R_TL1K or R_TL1Q (BitNet.rs's)", driver.ErrFormat},
	{"TL2", "it names two families: say MTL2 (Microsoft's), R_TL2K or R_TL2Q (BitNet.rs's)", driver.ErrFormat},
	{"R_C", "it stores -1 as 255, which two bits cannot hold", driver.ErrUnsupported},
	{"R_D", "its codes 0, 1 and 3 with a scale per column are no format of a file", driver.ErrUnsupported},
	{"R_E", "its codes -2, -1, 1 and 2 have no zero", driver.ErrUnsupported},
}

// ParseFormat returns the format of a name as String returns it, in any case. I2S is the short name of I2S_B.
// A name that could mean several layouts, such as "TL1", is driver.ErrFormat and the text lists them; layouts that
// are refused on purpose are driver.ErrUnsupported; any other name is driver.ErrInvalidArgument.
func ParseFormat(name string) (Format, error) {
	upper := strings.ToUpper(name)
	if upper == "I2S" {
		return I2SB, nil
	}
	var names []string
	for _, f := range Formats() {
		if f.String() == upper {
			return f, nil
		}
		names = append(names, f.String())
	}
	for _, m := range manifold {
		if m.name == upper {
			return 0, fmt.Errorf("quant: format %s: %s: %w", upper, m.means, m.err)
		}
	}
	return 0, fmt.Errorf("quant: format %.40q is not one of %s: %w", name, strings.Join(names, ", "),
		driver.ErrInvalidArgument)
}
