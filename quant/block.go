package quant

// ggml's blocks: codes in planes of bits, and a scale of 16 bits, with or without factors for parts of a block.

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"github.com/concord-compute/concord/internal/simd"
	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/source"
)

// block describes such a format. All that the package does with one follows from its description.
type block struct {
	name, about    string
	numbers, bytes int     // of a block
	planes         []plane // of the codes, that of the low bits first
	less           int     // numbers, in units of the scale, are codes less this
	signed         bool    // codes of 8 bits are bytes with a sign, stored less 128
	ternary        bool    // of the codes 0 to 3, 3 does not exist and reads as 1
	scale          int     // the place of the scale
	rule           int     // how parts are scaled, as kernels.GemmQ has it
	factors        int     // the place of the factors
	fit            fit
	level          [256]float32 // of codes as they are stored: the numbers in units of the scale
	// loop decodes the bytes of a block's only plane with one scale, where there is a faster way than by level.
	loop func(x []float32, from []byte, d float32)
}

// plane is where some bits of each code are. A run of codes is in consecutive bytes at one shift. The next run is above
// it and, where the bytes are full, in the bytes behind them.
// A run has a multiple of eight codes, or one.
type plane struct{ at, bits, run int }

// fit chooses scales and codes.
type fit struct {
	// choose stores the scales of a block's numbers, of which most is the largest magnitude, and makes the codes.
	choose func(b *block, data []byte, x []float32, most float32, q []byte) error
	packs  bool    // choose stores the codes, too
	vector simd.Op // does the whole encoder's work; 0: Go does it
}

// mostNumbers are those of the largest block.
const mostNumbers = 256

func (b block) codec() codec {
	d := []int{b.numbers, b.bytes, b.less, flag(b.signed), flag(b.ternary), b.scale, b.rule, b.factors}
	for _, p := range append(slices.Clone(b.planes), plane{run: 16})[:2] {
		d = append(d, p.at, p.bits, p.run)
	}
	words := make([]int32, len(d)) // quant_form of csrc/cpu/quant.h
	for i, v := range d {
		words[i] = int32(v)
	}
	for c := range b.level {
		switch b.level[c] = float32(c - b.less); {
		case b.signed:
			b.level[c] = float32(int8(c))
		case b.ternary && c == 3:
			b.level[c] = 0
		}
	}
	return codec{name: b.name, about: b.about, group: fixed(b.numbers, b.bytes, 0), encode: b.encode, decode: b.decode,
		bad: b.bad, block: &b, form: words, vector: vectors{b.fit.vector, simd.QuantBlockDecode}}
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// eachWord is the same number in each byte of a word.
const eachWord = 0x0101010101010101

// whole returns the codes of a block whose codes are bytes, and buffer for others.
func (b *block) whole(data, buffer []byte) []byte {
	if p := b.planes[0]; p.bits == 8 {
		return data[p.at:][:b.numbers]
	}
	return buffer[:b.numbers]
}

// unpack returns the codes of a block, which are in buffer or in data.
func (b *block) unpack(data, buffer []byte) []byte {
	q, up, le := b.whole(data, buffer), 0, binary.LittleEndian
	for _, p := range b.planes {
		if p.bits == 8 {
			break
		}
		from, mask := data[p.at:], uint64(eachWord*(1<<p.bits-1))
		if p.run == 1 {
			for i := range q {
				q[i] |= from[i*p.bits/8] >> (i * p.bits % 8) & byte(mask) << up
			}
			continue
		}
		for i, next := 0, 0; i < len(q); i = next {
			for j := 0; j < p.run; j += 8 {
				word := le.Uint64(from[j:])
				at := i + j
				for shift := 0; shift < 8; at, shift = at+p.run, shift+p.bits {
					if up == 0 {
						le.PutUint64(q[at:], word>>(shift&7)&mask)
					} else {
						le.PutUint64(q[at:], word>>(shift&7)&mask<<(up&7)|le.Uint64(q[at:]))
					}
				}
				next = at - j
			}
			from = from[p.run:]
		}
		up += p.bits
	}
	return q
}

// pack is the reverse of unpack.
func (b *block) pack(data, q []byte) {
	up, le := 0, binary.LittleEndian
	for _, p := range b.planes {
		if p.bits == 8 {
			break
		}
		to, mask := data[p.at:], uint64(eachWord*(1<<p.bits-1))
		if p.run == 1 {
			clear(to[:len(q)*p.bits/8])
			for i, c := range q {
				to[i*p.bits/8] |= c >> up & byte(mask) << (i * p.bits % 8)
			}
			continue
		}
		for i, next := 0, 0; i < len(q); i = next {
			for j := 0; j < p.run; j += 8 {
				word, at := uint64(0), i+j
				for shift := 0; shift < 8; at, shift = at+p.run, shift+p.bits {
					word |= le.Uint64(q[at:]) >> (up & 7) & mask << (shift & 7)
				}
				le.PutUint64(to[j:], word)
				next = at - j
			}
			to = to[p.run:]
		}
		up += p.bits
	}
}

// bits returns those of a code.
func (b *block) bits() (n int) {
	for _, p := range b.planes {
		n += p.bits
	}
	return n
}

// part returns how many numbers have a line of their own.
func (b *block) part() int {
	switch b.rule {
	case kernels.GemmQLeast:
		return 32
	case kernels.GemmQHalves:
		return 16
	}
	return b.numbers
}

// line returns what the codes of a part, less b.less, are multiplied with, and what is subtracted then.
func (b *block) line(data []byte, part int) (step, least float32) {
	d := getHalf(data[b.scale:])
	switch b.rule {
	case kernels.GemmQLeast:
		scale, low := factorsAt6(data[b.factors:], part)
		return d * float32(scale), getHalf(data[b.scale+2:]) * float32(low)
	case kernels.GemmQHalves:
		return d * float32(int8(data[b.factors+part])), 0
	}
	return d, 0
}

func (b *block) encode(_ Layout, to codes, x []float32) error {
	buffer := make([]byte, b.numbers) // once, since calls through b put it on the heap
	return eachBlock(to, x, b.bytes, b.numbers, func(data []byte, x []float32, most float32) error {
		q := b.whole(data, buffer)
		if err := b.fit.choose(b, data, x, most, q); err != nil {
			return err
		}
		if !b.fit.packs {
			b.pack(data, q)
		}
		return nil
	})
}

func (b *block) decode(_ Layout, x []float32, from codes) {
	var buffer [mostNumbers]byte
	n := b.part()
	for data := from.data; len(data) > 0; data, x = data[b.bytes:], x[b.numbers:] {
		if b.loop != nil {
			b.loop(x[:b.numbers], data[b.planes[0].at:], getHalf(data[b.scale:]))
			continue
		}
		q := b.unpack(data, buffer[:])
		for i, at := 0, 0; at < len(q); i, at = i+1, at+n {
			step, least := b.line(data, i)
			part := q[at : at+n]
			to := x[at:][:len(part)]
			for j, c := range part {
				to[j] = float32(step*b.level[c]) - least
			}
		}
	}
}

func (b *block) bad(_ Layout, from codes) (int, bool) {
	return eachBad(from, b.bytes, func(data []byte) (int, bool) {
		switch {
		case !finiteHalf(data[b.scale:]):
			return b.scale, true
		case b.rule == kernels.GemmQLeast && !finiteHalf(data[b.scale+2:]):
			return b.scale + 2, true
		case b.ternary:
			at, bad := findThree(data[b.planes[0].at:][:b.numbers/4])
			return b.planes[0].at + at, bad
		}
		return 0, false
	})
}

// The fits of blocks with one scale.

// fitTop makes the number of the largest magnitude the least code.
var fitTop = fit{vector: simd.QuantTopEncode,
	choose: func(b *block, data []byte, x []float32, most float32, q []byte) error {
		r, zero, err := b.putTop(data, x, most)
		last, q := byte(2*b.less-1), q[:len(x)]
		for i, v := range x {
			q[i] = min(last, byte(float32(v*r)+zero))
		}
		return err
	}}

// fitNibbles is fitTop for nibbles of one run, which it stores itself: pack would wait for the codes in memory.
var fitNibbles = fit{vector: simd.QuantTopEncode, packs: true,
	choose: func(b *block, data []byte, x []float32, most float32, _ []byte) error {
		r, zero, err := b.putTop(data, x, most)
		to := data[b.planes[0].at:][:len(x)/2]
		low, high := x[:len(to)], x[len(to):][:len(to)]
		for i := range to {
			to[i] = min(15, byte(float32(low[i]*r)+zero)) | min(15, byte(float32(high[i]*r)+zero))<<4
		}
		return err
	}}

// putTop stores the scale of fitTop. It returns the factor of numbers and the code of zero, with a half to round.
func (b *block) putTop(data []byte, x []float32, most float32) (r, zero float32, err error) {
	top := float32(0)
	for _, v := range x {
		if v == most || v == -most {
			top = v + 0 // a zero without a sign
			break
		}
	}
	d := top / float32(-b.less)
	if r, zero = reciprocal(d), float32(b.less)+0.5; r == 0 && d != 0 {
		zero = 0 // of quotients that are infinite or NaN the codes are 0, as ggml has them on x86
	}
	return r, zero, putHalf(data[b.scale:], d, x)
}

// fitMost makes the largest magnitude the largest code, of bytes with a sign.
var fitMost = fit{vector: simd.QuantMostEncode,
	choose: func(b *block, data []byte, x []float32, most float32, q []byte) error {
		d := most / float32(b.less-1)
		if err := putHalf(data[b.scale:], d, x); err != nil {
			return err
		}
		putBytes(q, x, reciprocal(d))
		return nil
	}}

// fitTrits makes the codes those of ternary numbers.
var fitTrits = fit{vector: simd.QuantTQ2Encode,
	choose: func(b *block, data []byte, x []float32, most float32, q []byte) error {
		if err := putHalf(data[b.scale:], most, x); err != nil {
			return err
		}
		r, q := reciprocal(most), q[:len(x)]
		for i, v := range x {
			q[i] = trit(v*r, 0.5)
		}
		return nil
	}}

// products returns the description of a format whose blocks products read as they are, or nil.
func (f Format) products() *block {
	if c := f.codec(); c != nil && c.block != nil && !c.block.ternary {
		return c.block
	}
	return nil
}

// inProducts names these formats.
func inProducts() string {
	var names []string
	for _, f := range Formats() {
		if f.products() != nil {
			names = append(names, f.String())
		}
	}
	return strings.Join(names, ", ")
}

// ProductBlock returns how many activations share a scale in products with the format's weights. It is 32 in formats
// whose blocks [Prepare] takes as they are. In others it is 0, and a whole row shares one.
func (f Format) ProductBlock() int {
	if f.products() == nil {
		return 0
	}
	return kernels.GemmQBlock
}

// form puts the blocks of 16 rows, a panel, beside each other, word by word, and their scales.
func (b *block) form(m *Matrix) form {
	const rows, numbers = kernels.GemmQRows, kernels.GemmQBlock
	k, groups := padded(m.meant(), b.numbers), m.Cols/b.numbers
	parts, scales, bits := k/numbers, kernels.GemmQScales(b.rule), b.bits()
	return form{name: m.weights(), family: "gemm_q", quantize: "quantize_blocks", by: runtime.U16, k: k, parts: parts,
		sums: 2 * parts, rows: padded(m.Rows, rows), band: rows, words: parts * bits, bytes: 2 * parts * scales / rows,
		defines: []source.Define{{Name: "BITS", Value: strconv.Itoa(bits)},
			{Name: "FACTORS", Value: strconv.Itoa(b.rule)}},
		fill: func(lo, hi int, codes []uint32, by []byte, _ []float32) error {
			var buffer [mostNumbers]byte
			middle := byte(flag(b.signed)) << 7
			for r := range min(hi, m.Rows) - lo {
				for g := range k / b.numbers {
					data, at := m.Data[((lo+r)*groups+g)*b.bytes:][:b.bytes], r/rows*parts+g*b.numbers/numbers
					b.putScales(data, by[2*at*scales:], r%rows)
					q := b.unpack(data, buffer[:])
					for i := 0; i < len(q); i += numbers {
						putWords(q[i:i+numbers], middle, bits, codes[(at*bits+i/numbers*bits)*rows+r%rows:])
					}
				}
			}
			return nil
		}}
}

// putScales stores the scales and factors of a block, as the kernel gemm_q has them for a row of a panel.
func (b *block) putScales(data, by []byte, row int) {
	copy(by[2*row:], data[b.scale:][:2])
	switch b.rule {
	case kernels.GemmQLeast:
		copy(by[32+2*row:], data[b.scale+2:][:2])
		for j := range 8 {
			scale, least := factorsAt6(data[b.factors:], j)
			by[64+32*j+row], by[80+32*j+row] = byte(scale), byte(least)
		}
	case kernels.GemmQHalves:
		for j := range 16 {
			by[64+16*j+row] = data[b.factors+j]
		}
	}
}

// putWords stores the codes of 32 numbers, from middle on, in every 16th word, as the kernel gemm_q has them.
func putWords(q []byte, middle byte, bits int, to []uint32) {
	const rows = kernels.GemmQRows
	above := bits - 4
	for e, c := range q {
		c, byteOf := uint32(c^middle), 8*(e%4)
		if bits == 8 {
			to[e/4*rows] |= c << byteOf
			continue
		}
		to[e%16/4*rows] |= c & 15 << (e / 16 * 4) << byteOf
		if at := e / 4 * above; above > 0 {
			to[(4+at/8)*rows] |= c >> 4 << (at % 8) << byteOf
		}
	}
}
