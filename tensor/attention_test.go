package tensor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type attentionCase struct {
	batch                                       []int
	heads, shared, queries, keys, width, values int
	mask                                        []int // the shape of a mask of truths, or of numbers
	numbers                                     bool
	o                                           AttentionOptions
}

var attentionCases = []attentionCase{
	{batch: []int{2}, heads: 2, shared: 2, queries: 3, keys: 4, width: 3, values: 2},
	{heads: 4, shared: 2, queries: 3, keys: 5, width: 2, values: 2, o: AttentionOptions{Scale: new(0.3)}},
	{heads: 2, shared: 2, queries: 3, keys: 5, width: 2, values: 2, o: AttentionOptions{Scale: new(0.0)}},
	{batch: []int{1, 2}, heads: 2, shared: 1, queries: 5, keys: 5, width: 2, values: 3, o: AttentionOptions{Causal: true}},
	{heads: 1, shared: 1, queries: 3, keys: 6, width: 2, values: 2, o: AttentionOptions{Causal: true, Offset: 3}},
	{heads: 1, shared: 1, queries: 5, keys: 3, width: 2, values: 2, o: AttentionOptions{Causal: true, Offset: -2}},
	{batch: []int{2}, heads: 2, shared: 1, queries: 3, keys: 4, width: 2, values: 2, mask: []int{2, 1, 1, 4}},
	{batch: []int{2}, heads: 2, shared: 2, queries: 3, keys: 4, width: 2, values: 2, mask: []int{3, 4},
		o: AttentionOptions{Causal: true, Offset: 1}},
	{batch: []int{2}, heads: 2, shared: 1, queries: 3, keys: 4, width: 2, values: 2, mask: []int{2, 3, 4}, numbers: true},
	{batch: []int{2}, heads: 4, shared: 2, queries: 2, keys: 3, width: 2, values: 1, mask: []int{2, 4, 2, 3},
		numbers: true},
	{batch: []int{2, 1, 2}, heads: 4, shared: 2, queries: 2, keys: 3, width: 2, values: 1, mask: []int{2, 1, 1, 4, 1, 3}},
	{batch: []int{2, 1, 2, 1, 1}, heads: 2, shared: 2, queries: 2, keys: 3, width: 1, values: 1,
		mask: []int{2, 1, 2, 1, 1, 1, 2, 3}},
}

// made returns the operands of a case.
func (c attentionCase) made(s *Scope, r *rand.Rand) (q, k, v *Tensor, o AttentionOptions) {
	shape := func(n ...int) []int { return append(append([]int{}, c.batch...), n...) }
	o = c.o
	if c.mask != nil {
		o.Mask = someDoubles(s, r, c.mask...)
		if !c.numbers {
			o.Mask = o.Mask.Gt(-0.2)
		}
	}
	return someDoubles(s, r, shape(c.heads, c.queries, c.width)...),
		someDoubles(s, r, shape(c.shared, c.keys, c.width)...), someDoubles(s, r, shape(c.shared, c.keys, c.values)...), o
}

// want computes attention by its definition.
func (c attentionCase) want(q, k, v, mask []float64) (y []float64) {
	batch, scale := count(c.batch), 1/math.Sqrt(float64(c.width))
	if c.o.Scale != nil {
		scale = *c.o.Scale
	}
	shape := append(append([]int{}, c.batch...), c.heads, c.queries, c.keys)
	at := func(i []int) float64 { // an element of the mask
		j := append([]int{}, i[len(i)-len(c.mask):]...)
		for d := range j {
			if c.mask[d] == 1 {
				j[d] = 0
			}
		}
		return mask[indexOf(c.mask, j)]
	}
	weights := make([]float64, count(shape))
	eachIndex(shape, func(n int, i []int) {
		row := n / c.keys
		head := row / c.queries
		group := head/c.heads*c.shared + head%c.heads/(c.heads/c.shared)
		s := 0.0
		for d := range c.width {
			s += scale * q[row*c.width+d] * k[(group*c.keys+i[len(i)-1])*c.width+d]
		}
		if c.numbers {
			s += at(i)
		}
		if c.mask == nil || c.numbers || at(i) != 0 {
			weights[n] = math.Exp(s)
		}
		if c.o.Causal && i[len(i)-1] > i[len(i)-2]+c.o.Offset {
			weights[n] = 0
		}
	})
	for row := range batch * c.heads * c.queries {
		head := row / c.queries
		group := head/c.heads*c.shared + head%c.heads/(c.heads/c.shared)
		for d := range c.values {
			sum, all := 0.0, 0.0
			for j := range c.keys {
				w := weights[row*c.keys+j]
				sum, all = sum+w*v[(group*c.keys+j)*c.values+d], all+w
			}
			if all == 0 {
				all = 1
			}
			y = append(y, sum/all)
		}
	}
	return y
}

func TestAttention(t *testing.T) {
	s, r := scope(t), rand.New(rand.NewPCG(41, 42))
	for _, c := range attentionCases {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			q, k, v, o := c.made(s, r)
			var mask []float64
			if o.Mask != nil {
				mask = values[float64](t, o.Mask.Cast(F64))
			}
			want := c.want(values[float64](t, q), values[float64](t, k), values[float64](t, v), mask)
			y := Attention(q, k, v, o)
			require.NoError(t, y.Err())
			assert.InDeltaSlice(t, want, values[float64](t, y), 1e-12)
			assert.InDeltaSlice(t, want, values[float64](t, Attention(q.Cast(F32), k.Cast(F32), v.Cast(F32), o).Cast(F64)), 1e-5)
			args := []*Tensor{q, k, v}
			if c.numbers {
				args = append(args, o.Mask)
			}
			f := func(args ...*Tensor) *Tensor {
				if c.numbers {
					o.Mask = args[3]
				}
				return Attention(args[0], args[1], args[2], o)
			}
			gradients(t, f, args...)
			gradients(t, func(args ...*Tensor) *Tensor {
				g := Grad(f(args...).Exp().Sum(), args[:3]...)
				return Concat(0, g[0].Flatten(), g[1].Flatten(), g[2].Flatten())
			}, args...)
		})
	}
}

// Several blocks of queries and of heads have the results of one.
func TestAttentionBlocks(t *testing.T) {
	s := scope(t)
	for _, causal := range []bool{false, true} {
		a := attention{groups: 6, repeats: 2, queries: 1100, keys: 700, width: 8, values: 4, scale: 0.3, causal: causal,
			offset: 90}
		blocks := 0
		require.NoError(t, a.each(func(block) error { blocks++; return nil }))
		assert.Greater(t, blocks, 5)
		q, k, v := gaussian(s, 1, 1, 3, 4, 1100, 8), gaussian(s, 2, 1, 3, 2, 700, 8), gaussian(s, 3, 1, 3, 2, 700, 4)
		args := []*Tensor{q.Reshape(6, 2, 1100, 8), k.Reshape(6, 700, 8), v.Reshape(6, 700, 4)}
		want, y := a.composed(args), Attention(q, k, v, AttentionOptions{Causal: causal, Offset: 90, Scale: new(0.3)})
		assert.InDeltaSlice(t, values[float32](t, want), values[float32](t, y), 1e-5)
		g := gaussian(s, 4, 1, y.shape...)
		got := GradOf([]*Tensor{y}, []*Tensor{g}, q, k, v)
		for i, d := range GradOf([]*Tensor{want}, []*Tensor{g.Reshape(want.shape...)}, args...) {
			assert.InDeltaSlice(t, values[float32](t, d), values[float32](t, got[i]), 1e-4)
		}
		// A compiled function computes other arguments.
		c := Compile(s, func(args ...*Tensor) []*Tensor {
			y := Attention(args[0], args[1], args[2], AttentionOptions{Causal: causal, Offset: 90, Scale: new(0.3)})
			return append(GradOf([]*Tensor{y}, []*Tensor{args[3]}, args[:3]...), y)
		})
		for range 3 {
			out, err := c.Call(t.Context(), q, k, v, g)
			require.NoError(t, err)
			assert.Equal(t, values[float32](t, y), values[float32](t, out[3]))
			assert.Equal(t, values[float32](t, got[1]), values[float32](t, out[1]))
			q = gaussian(s, 9, 0.5, q.shape...)
			y = Attention(q, k, v, AttentionOptions{Causal: causal, Offset: 90, Scale: new(0.3)})
			got = GradOf([]*Tensor{y}, []*Tensor{g}, q, k, v)
		}
	}
}

// The memory beside operands and results is linear in their length, and a mask that is stretched is not stored.
func TestAttentionMemory(t *testing.T) {
	s := scope(t)
	q := gaussian(s, 1, 1, 3, 4, 40, 8)
	p, err := Explain(Attention(q, q, q, AttentionOptions{Mask: Iota(s, I32, 3, 1, 1, 40).Lt(70)}))
	require.NoError(t, err)
	for _, task := range p.Tasks {
		assert.LessOrEqual(t, task.Written, int64(4*(q.Len()+q.Len()/8)))
	}
	a := attention{groups: 8, repeats: 1, queries: 4096, keys: 4096, width: 64, values: 64}
	_, products, rows := a.sizes()
	assert.LessOrEqual(t, 2*4*products+4*rows, 64<<20)
	a.queries, a.keys = 1<<20, 1<<20
	_, products, _ = a.sizes()
	assert.LessOrEqual(t, products, blockProducts)
}

func TestAttentionMistakes(t *testing.T) {
	s := scope(t)
	q := Ones(s, F32, 2, 4, 3, 8)
	for _, y := range []*Tensor{
		Attention(q, Ones(s, F32, 2, 3, 3, 8), Ones(s, F32, 2, 3, 3, 8), AttentionOptions{}),
		Attention(q, Ones(s, F32, 2, 2, 3, 7), q, AttentionOptions{}),
		Attention(q, Ones(s, F32, 2, 2, 3, 8), Ones(s, F32, 2, 2, 4, 8), AttentionOptions{}),
		Attention(q, Ones(s, F32, 1, 2, 3, 8), Ones(s, F32, 1, 2, 3, 8), AttentionOptions{}),
		Attention(q.Index(0, 0), q, q, AttentionOptions{}),
		Attention(Ones(s, F32, 3, 8), Ones(s, F32, 3, 8), Ones(s, F32, 3, 8), AttentionOptions{}),
		Attention(q, q, q, AttentionOptions{Mask: Ones(s, Bool, 4, 4)}),
		Attention(q, q, q, AttentionOptions{Mask: Ones(s, Bool, 1, 2, 4, 3, 3)}),
		Attention(Ones(s, F32, 1, 3, 0), Ones(s, F32, 1, 3, 0), Ones(s, F32, 1, 3, 0), AttentionOptions{}),
	} {
		assert.ErrorIs(t, y.Err(), ErrShape)
	}
	assert.ErrorIs(t, Attention(q.Cast(I32), q.Cast(I32), q.Cast(I32), AttentionOptions{}).Err(), ErrType)
	assert.Empty(t, values[float32](t, Attention(Ones(s, F32, 0, 4, 3, 8), Ones(s, F32, 0, 2, 3, 8),
		Ones(s, F32, 0, 2, 3, 5), AttentionOptions{})))
	none := Attention(q, Ones(s, F32, 2, 4, 0, 8), Ones(s, F32, 2, 4, 0, 1), AttentionOptions{})
	assert.Equal(t, make([]float32, 24), values[float32](t, none))
	assert.Equal(t, F16, Attention(q.Cast(F16), q.Cast(F16), q.Cast(F16), AttentionOptions{}).Type())
}

// BenchmarkAttention measures attention of 4096 places and 8 heads of 64, and its gradients.
func BenchmarkAttention(b *testing.B) {
	s := scope(b)
	shape := []int{1, 8, 4096, 64}
	q, k, v, g := gaussian(s, 1, 1, shape...), gaussian(s, 2, 1, shape...), gaussian(s, 3, 1, shape...),
		gaussian(s, 4, 1, shape...)
	for _, causal := range []bool{false, true} {
		f := func(args ...*Tensor) *Tensor {
			return Attention(args[0], args[1], args[2], AttentionOptions{Causal: causal})
		}
		b.Run(fmt.Sprintf("causal %v", causal), func(b *testing.B) {
			bench(b, func(args ...*Tensor) []*Tensor { return []*Tensor{f(args...)} }, 0, q, k, v)
		})
		b.Run(fmt.Sprintf("causal %v with gradients", causal), func(b *testing.B) {
			bench(b, func(args ...*Tensor) []*Tensor {
				y := f(args...)
				return append(GradOf([]*Tensor{y}, []*Tensor{args[3]}, args[:3]...), y)
			}, 0, q, k, v, g)
		})
	}
}
