package cpu

// The nearest vectors and the distances of listed rows, on memory between guard pages, in every instruction set.

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels"
	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

// TestNearestShapes checks, for random sizes with equal vectors and numbers that are not finite, that a ranking
// has the distances of the definition, and that a launch finds the first ones of exactly these, whatever the
// numbers of queries and parts.
func TestNearestShapes(t *testing.T) {
	eachBytes(t, func(t *testing.T, d *device) {
		f := newFence(t, 23)
		trials := 40
		if brief() {
			trials = 8
		}
		for _, typ := range []driver.Type{driver.F32, driver.F16, driver.BF16, driver.I8} {
			for _, metric := range nearMetrics {
				for range trials {
					f.nearest(d, typ, metric, 1+f.r.IntN(70)*f.r.IntN(2), 1+f.r.IntN(300), 1+f.r.IntN(150), 1+f.r.IntN(20),
						1+f.r.IntN(4))
				}
				f.nearest(d, typ, metric, 3, 40, 784, 5, 1)
				f.nearest(d, typ, metric, 1, 70, 513, 5, 1)
			}
			f.nearest(d, typ, "l2", 40, 2000, 33, 100, 1)
		}
		f.nearest(d, driver.I8, "l2", 20, 9, l2Int8Short+5, 3, 1)
	})
}

func (f *fence) nearest(d *device, typ driver.Type, metric string, nq, nv, dim, k, parts int) {
	f.t.Helper()
	name := typ.String()
	size := kernels.SizeOf(name)
	q, v := f.anything(name, nq*dim), f.anything(name, nv*dim)
	row := dim * size
	for i := 2; i < nv; i += 7 { // equal ones
		copy(v[i*row:(i+1)*row], v[(i-2)*row:])
	}
	if nv > 5 {
		clear(v[3*row : 4*row])
		if kernels.IsFloat(name) {
			copy(v[5*row:], kernels.Encode(name, []float64{math.NaN()}))
			copy(v[4*row:], kernels.Encode(name, []float64{math.Inf(1)}))
		}
	}
	distances, places := f.bytes(4*nq*parts*k), f.bytes(4*nq*parts*k)
	require.NoError(f.t, invoke(f.t, d, "nearest", "nearest",
		[]source.Define{{Name: "T", Value: name}, {Name: "METRIC", Value: metric}}, [3]int{1, 1, 1},
		q, v, distances, places, uint32(nq), uint32(nv), uint32(dim), uint32(k), uint32(parts)))
	found, at := elementsOf[float32](distances), elementsOf[uint32](places)
	vectors, each := kernels.Decode(name, v), (nv+parts-1)/parts
	for i := range nq {
		r := &kernels.Ranking{Metric: metric, Type: name, Dim: dim, Query: q[i*row : (i+1)*row : (i+1)*row], Vectors: v,
			Rows: elementsOf[uint32](f.bytes(4 * nv)), Distances: elementsOf[float32](f.bytes(4 * nv))}
		query := kernels.Decode(name, r.Query)
		if size == 2 {
			r.Query = f.bytes(4 * dim)
			copy(r.Query, kernels.Encode("f32", query))
		}
		for j, p := range f.r.Perm(nv) {
			r.Rows[j] = uint32(p)
		}
		require.True(f.t, d.Rank(r))
		all := make([]float32, nv)
		for j, p := range r.Rows {
			all[p] = r.Distances[j]
			want, unit := exactDistance(metric, query, vectors[int(p)*dim:(int(p)+1)*dim])
			if got := float64(all[p]); !(math.Abs(got-want) <= unit*float64(dim+8)*0x1p-23) && !(got != got && want != want) &&
				got != want {
				require.Equal(f.t, want, got, "%s %s, %d components, vector %d", name, metric, dim, p)
			}
		}
		for part := range parts {
			var order []neighbor
			for j := min(part*each, nv); j < min((part+1)*each, nv); j++ {
				order = append(order, neighbor{orderKey(float64(all[j])), int64(j)})
			}
			slices.SortFunc(order, neighbor.compare)
			for j := range k {
				want, o := noNeighbor, (i*parts+part)*k+j
				if j < len(order) {
					want = order[j]
				}
				got := neighbor{orderKey(float64(found[o])), int64(at[o])}
				require.Equal(f.t, want, got, "%s %s, %d queries, %d vectors of %d, part %d of %d: result %d of query %d", name,
					metric, nq, nv, dim, part, parts, j, i)
			}
		}
		if metric != "l2" {
			continue
		}
		r.Bound = all[f.r.IntN(nv)]
		require.True(f.t, d.Rank(r))
		for j, p := range r.Rows {
			if got := r.Distances[j]; all[p] <= r.Bound || !math.IsInf(float64(got), 1) {
				require.Zero(f.t, cmp.Compare(all[p], got), "%s, %d components, bound %v: vector %d is %v and should be %v", name,
					dim, r.Bound, p, got, all[p])
			}
		}
	}
	f.free()
}

// exactDistance returns a distance in float64, and the number whose units in the last place its error is measured in.
func exactDistance(metric string, x, y []float64) (d, unit float64) {
	var xx, yy, size float64
	for i, a := range x {
		b := y[i]
		switch metric {
		case "l2":
			d += (a - b) * (a - b)
		default:
			d += a * b
		}
		size += math.Abs(a * b)
		xx, yy = xx+a*a, yy+b*b
	}
	switch {
	case metric == "l2":
		return d, d
	case metric == "ip":
		return -d, size
	case xx == 0 || yy == 0:
		return 1, 0
	}
	return 1 - min(max(d/math.Sqrt(xx*yy), -1), 1), 1
}
