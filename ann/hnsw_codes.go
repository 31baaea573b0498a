package ann

// The codes by which searches may follow a graph: a byte for each component.

import (
	"hash/maphash"
	"math"
	"slices"
)

// nodeCoding makes codes of vectors: of how they differ from a centre, since those far from zero, and near to
// each other, would all be the same; for cosine of their directions, whatever their lengths.
type nodeCoding struct {
	coding
	centre     []float32 // the medians of the vectors of which the coding was made; nil for zero
	directions bool
	seen       map[uint64]struct{} // hashes of different vectors, up to mostCoded; nil if they have not been counted
	made       int                 // how many of these there were when the coding was made
	far        int                 // vectors since then with components that saturate by far
}

const (
	mostCoded  = 4096            // different vectors after which a coding stays, but for those that saturate
	codedAgain = 4               // times as many different vectors before that make another one
	mostSample = 2 * mostCoded   // vectors of which a coding is made, at most
	farOf      = 256             // another coding is made when one in so many vectors saturates,
	farOfMade  = 16              // and one in so many of those that were counted
	fewFar     = 100             // one in so many may saturate, if the others
	muchNearer = 8               // are so many times nearer to the centre
	smallest   = 1. / (1 << 126) // the scale if all vectors are equal: others saturate
)

var codeSeed = maphash.MakeSeed()

// see counts different vectors, until they are mostCoded.
func (c *nodeCoding) see(vectors []float32, dim int) {
	for i := 0; i < len(vectors) && len(c.seen) < mostCoded; i += dim {
		c.seen[maphash.Bytes(codeSeed, bytesOf(vectors[i:i+dim]))] = struct{}{}
	}
}

// codingOf returns the coding for vectors. Those that are there more than once count once, so that many copies
// do not say what is usual, and few that are much farther than all others saturate.
func codingOf(m Metric, vectors []float32, dim int) nodeCoding {
	c := nodeCoding{coding: coding{INT8Scaled, smallest}, directions: m.onNearest() == "cosine"}
	seen, step := map[uint64]bool{}, max(1, len(vectors)/dim/mostSample)*dim
	var sample [][]float32
	for i := 0; i < len(vectors); i += step {
		row := vectors[i : i+dim]
		if sum := maphash.Bytes(codeSeed, bytesOf(row)); !seen[sum] {
			seen[sum] = true
			sample = append(sample, row)
		}
	}
	if !c.directions {
		c.centre = make([]float32, dim)
		var column []float32
		for j := range dim {
			column = column[:0]
			for _, row := range sample {
				if x := row[j]; x-x == 0 {
					column = append(column, x)
				}
			}
			if len(column) > 0 {
				slices.Sort(column)
				c.centre[j] = column[len(column)/2]
			}
		}
	}
	reach, row := make([]float64, len(sample)), make([]float32, dim)
	for i, x := range sample {
		reach[i] = reachOf(c.moved(row, x))
	}
	slices.Sort(reach)
	most := reach[len(reach)-1]
	if usual := reach[len(reach)-1-len(reach)/fewFar]; usual > 0 && muchNearer*usual < most {
		most = usual
	}
	c.scale = max(most/127, smallest)
	return c
}

// reachOf returns the largest size of a finite component.
func reachOf(vector []float32) (most float64) {
	for _, x := range vector {
		if a := math.Abs(float64(x)); a > most && !math.IsInf(a, 0) {
			most = a
		}
	}
	return most
}

// moved returns a vector as it is coded, in to. Differences that floats do not reach are the largest ones.
func (c *nodeCoding) moved(to, vector []float32) []float32 {
	length := 1.
	if c.directions {
		if length = norm(vector); length == 0 {
			length = 1
		}
	}
	for j, x := range vector {
		v := float64(x) / length
		if c.centre != nil && v-v == 0 {
			v = min(max(v-float64(c.centre[j]), -math.MaxFloat32), math.MaxFloat32)
		}
		to[j] = float32(v)
	}
	return to
}

// encode stores the codes of vectors in to. It returns how many of them saturate by far.
func (c *nodeCoding) encode(to []byte, vectors []float32, dim int) (far int) {
	row := make([]float32, dim)
	for i := 0; i < len(vectors); i += dim {
		if reachOf(c.moved(row, vectors[i:i+dim])) > 2*127*c.scale {
			far++
		}
		c.coding.encode(to[i:i+dim], row)
	}
	return far
}

// encode makes the codes of new vectors, from node have on, and of all if there were few different ones when
// the coding was made, since the first ones say little of those that follow, or if too many have come since
// then that saturate.
func (h *HNSW) encode(have, n int) {
	dim, c := h.e.dim, &h.code
	vectors := elements[float32](h.stores[0].visible)[:n*dim]
	if c.seen == nil {
		c.seen = map[uint64]struct{}{}
		c.see(vectors[:have*dim], dim)
		c.made = len(c.seen)
	}
	c.see(vectors[have*dim:], dim)
	few := c.made == 0 || c.made < mostCoded && len(c.seen) >= codedAgain*c.made
	if !few {
		c.far += c.encode(h.codes.visible[have*dim:], vectors[have*dim:], dim)
	}
	if few || c.far*farOf > n && c.far*farOfMade > c.made {
		code := codingOf(h.e.metric, vectors, dim)
		code.seen, code.made = c.seen, len(c.seen)
		h.mu.Lock() // searches read the codes
		defer h.mu.Unlock()
		defer h.publish(len(h.ids))
		h.code = code
		h.code.encode(h.codes.visible, vectors, dim)
	}
}

// outgrown reports whether a coding of all vectors would have quite another scale than that of the codes.
func (h *HNSW) outgrown() bool {
	if !h.o.Codes || len(h.ids) == 0 {
		return false
	}
	scale := codingOf(h.e.metric, elements[float32](h.stores[0].visible)[:len(h.ids)*h.e.dim], h.e.dim).scale
	return scale > codedAgain*h.code.scale || scale*codedAgain < h.code.scale
}
