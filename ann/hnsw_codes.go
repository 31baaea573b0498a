package ann

// The codes by which searches may follow a graph: a byte for each component.

import "math"

// nodeCoding makes codes of vectors: of how they differ from a centre, since those far from zero, and near to each other, would all be the same; for cosine of their
// directions, whatever their lengths.
type nodeCoding struct {
	coding
	centre     []float32 // the mean of the vectors of which the coding was made; nil for zero
	directions bool
	made       int // of so many vectors, 0 before there is a coding
}

const (
	mostCoded  = 4096 // vectors after which a coding stays
	codedAgain = 4    // times as many vectors before that make another one
)

// codingOf returns the coding for vectors.
func codingOf(m Metric, vectors []float32, dim int) nodeCoding {
	c := nodeCoding{coding: coding{INT8Scaled, 1}, directions: m.onNearest() == "cosine", made: len(vectors) / dim}
	sums, counts := make([]float64, dim), make([]float64, dim)
	for i, x := range vectors {
		if v := float64(x); v-v == 0 {
			sums[i%dim] += v
			counts[i%dim]++
		}
	}
	if !c.directions && c.made > 1 {
		c.centre = make([]float32, dim)
		for j := range sums {
			c.centre[j] = float32(sums[j] / max(counts[j], 1))
		}
	}
	most := 0.0
	row := make([]float32, dim)
	for i := 0; i < len(vectors); i += dim {
		for _, x := range c.moved(row, vectors[i:i+dim]) {
			if a := math.Abs(float64(x)); a > most && !math.IsInf(a, 0) {
				most = a
			}
		}
	}
	if most == 0 { // they are equal
		c.centre = nil
		c.coding = INT8Scaled.scaleOf(vectors)
		return c
	}
	c.scale = most / 127
	return c
}

// moved returns a vector as it is coded, in to.
func (c *nodeCoding) moved(to, vector []float32) []float32 {
	length := 1.
	if c.directions {
		if length = norm(vector); length == 0 {
			length = 1
		}
	}
	for j, x := range vector {
		if to[j] = float32(float64(x) / length); c.centre != nil {
			to[j] = x - c.centre[j]
		}
	}
	return to
}

// encode stores the codes of vectors in to.
func (c *nodeCoding) encode(to []byte, vectors []float32, dim int) {
	row := make([]float32, dim)
	for i := 0; i < len(vectors); i += dim {
		c.coding.encode(to[i:i+dim], c.moved(row, vectors[i:i+dim]))
	}
}

// encode makes the codes of new vectors, from node have on, and of all if there were few when the coding was made: the first ones say little of those that follow.
func (h *HNSW) encode(have, n int) {
	dim := h.e.dim
	vectors := elements[float32](h.rows)
	if h.code.made == 0 || h.code.made < mostCoded && n >= codedAgain*h.code.made {
		code := codingOf(h.e.metric, vectors[:n*dim], dim)
		h.mu.Lock() // searches read the codes
		defer h.mu.Unlock()
		defer h.publish(len(h.ids))
		h.code, have = code, 0
	}
	h.code.encode(h.codes[have*dim:], vectors[have*dim:n*dim], dim)
}
