package gomlx

// Computations on several devices: which ones, what they exchange, and arrays that are divided among them.

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/pkg/errors"

	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/tensor"
)

// DistributedSPMD makes the computation one that several devices run together, each with inputs of its own.
func (w *builder) DistributedSPMD(devices int) error {
	if devices < 1 || devices > len(w.backend.devices) {
		return errors.Errorf("a computation on %d devices: the backend %s has %d", devices, w.backend, len(w.backend.devices))
	}
	if w.members != 0 {
		return errors.Errorf("%s is distributed already", w.name)
	}
	w.members, w.assigned = devices, nil
	for i := range devices {
		w.assigned = append(w.assigned, compute.DeviceNum(i))
	}
	return nil
}

// DistributedAutoSharding makes the computation one of the devices of meshes, among which parameters and results may
// be divided. It is built as for one device.
func (w *builder) DistributedAutoSharding(meshes ...compute.Mesh) error {
	devices := 0
	for i, m := range meshes {
		n := 1
		for _, size := range m.AxesSizes {
			n *= size
		}
		if len(m.AxesSizes) != len(m.AxesNames) || n < 1 {
			return errors.Errorf("mesh %q of axes %v of sizes %v", m.Name, m.AxesNames, m.AxesSizes)
		}
		if i > 0 && n != devices {
			return errors.Wrapf(compute.ErrNotImplemented, "mesh %q has %d devices, and mesh %q %d: other numbers", m.Name, n,
				meshes[0].Name, devices)
		}
		if p := m.LogicalDeviceAssignment; len(p) > 0 && !isPermutation(p, n) {
			return errors.Errorf("mesh %q: %v are not its %d devices", m.Name, p, n)
		}
		devices = n
	}
	if err := w.DistributedSPMD(devices); err != nil {
		return err
	}
	for _, m := range meshes { // copies, since the computation is traced later
		m.AxesSizes, m.AxesNames = slices.Clone(m.AxesSizes), slices.Clone(m.AxesNames)
		m.LogicalDeviceAssignment = slices.Clone(m.LogicalDeviceAssignment)
		w.meshes = append(w.meshes, m)
	}
	return nil
}

func isPermutation(p []int, n int) bool {
	q := slices.Sorted(slices.Values(p))
	return len(q) == n && q[0] == 0 && q[n-1] == n-1 && len(slices.Compact(q)) == n
}

// DeviceAssignment says which devices run the computation.
func (w *builder) DeviceAssignment(devices ...compute.DeviceNum) error {
	if want := max(1, w.members); len(devices) != want {
		return errors.Errorf("%d devices for a computation on %d", len(devices), want)
	}
	for i, n := range devices {
		if _, err := w.backend.device(n); err != nil {
			return err
		}
		if slices.Contains(devices[:i], n) {
			return errors.Errorf("device %d twice", n)
		}
	}
	w.assigned = slices.Clone(devices)
	return nil
}

var reductions = map[compute.ReduceOpType]cluster.Op{compute.ReduceOpSum: cluster.Sum,
	compute.ReduceOpProduct: cluster.Product, compute.ReduceOpMax: cluster.Max, compute.ReduceOpMin: cluster.Min}

// AllReduce combines arrays of the devices of each group, which all get the result. Every device of the computation is
// in one group; no groups are one of all. Of several groups each device gathers the arrays of all.
func (f *function) AllReduce(operands []compute.Value, reduction compute.ReduceOpType,
	replicaGroups [][]int) ([]compute.Value, error) {
	op, ok := reductions[reduction]
	if !ok {
		return nil, errors.Errorf("all-reduce by the operation %v", reduction)
	}
	in, err := f.operands(compute.OpTypeAllReduce, operands...)
	if err != nil {
		return nil, err
	}
	if f.builder.meshes != nil {
		return nil, errors.Errorf("all-reduce where sharding is automatic: every device has the whole")
	}
	members := max(1, f.builder.members)
	var all []int
	var groups [][]int
	for _, g := range replicaGroups {
		all, groups = append(all, g...), append(groups, slices.Clone(g))
	}
	if len(replicaGroups) > 0 && !isPermutation(all, members) {
		return nil, errors.Errorf("all-reduce: groups %v of %d devices, each of which has to be in one group", replicaGroups,
			members)
	}
	var results []compute.Value
	for _, v := range in {
		if v.shape.DType == dtypes.Bool {
			return nil, errors.Errorf("all-reduce of %s", v.shape)
		}
		if len(groups) > 1 && v.shape.Rank() == tensor.MaxRank {
			return nil, errors.Wrapf(compute.ErrNotImplemented, "all-reduce of groups of shape %s", v.shape)
		}
		r, err := f.single(compute.OpTypeAllReduce, v.shape, []*value{v}, func(_ *trace, in []array) array {
			x := in[0]
			if len(groups) <= 1 {
				return x.AllReduce(op)
			}
			i := slices.IndexFunc(groups, func(g []int) bool { return slices.Contains(g, x.Scope().Rank()) })
			sum := reducedRows(x, op, groups[i])
			if f.builder.backend.alike() {
				return sum
			}
			return rows(sum).Narrow(0, groups[i][0], 1).Reshape(x.Shape()...) // the same bits at all
		})
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

// rows returns the arrays of all members, one in each row.
func rows(x array) array { return x.Reshape(append([]int{1}, x.Shape()...)...).AllGather() }

// reducedRows combines the arrays of some members, in the order of the list.
func reducedRows(x array, op cluster.Op, ranks []int) array {
	all := rows(x)
	var out array
	for i, rank := range ranks {
		row := all.Narrow(0, rank, 1)
		switch {
		case i == 0:
			out = row
		case op == cluster.Sum:
			out = out.Add(row)
		case op == cluster.Product:
			out = out.Mul(row)
		case op == cluster.Max:
			out = out.Maximum(row)
		default:
			out = out.Minimum(row)
		}
	}
	return out.Reshape(x.Shape()...)
}

// parts says how an array is divided among the devices of a mesh. nil is not at all: every device has the whole.
type parts struct {
	mesh *compute.Mesh
	axes [][]int // for each dimension the axes of the mesh that divide it, the one that changes slowest first
	rank []int   // by the place in the mesh, in the order of rows: the rank of the device
}

// parts returns how a sharding divides an array.
func (w *builder) parts(s *compute.ShardingSpec, shape shapes.Shape) (*parts, error) {
	if s == nil {
		return nil, nil
	}
	i := slices.IndexFunc(w.meshes, func(m compute.Mesh) bool { return m.Name == s.Mesh })
	if i < 0 {
		return nil, errors.Errorf("a sharding by mesh %q, which the computation does not have", s.Mesh)
	}
	p := &parts{mesh: &w.meshes[i], axes: make([][]int, shape.Rank()), rank: w.meshes[i].LogicalDeviceAssignment}
	if len(p.rank) == 0 {
		for rank := range w.members {
			p.rank = append(p.rank, rank)
		}
	}
	if len(s.Axes) > shape.Rank() {
		return nil, errors.Errorf("a sharding of %d dimensions, of shape %s", len(s.Axes), shape)
	}
	var used []string
	for d, names := range s.Axes {
		for _, name := range names {
			a := slices.Index(p.mesh.AxesNames, name)
			if a < 0 || slices.Contains(used, name) {
				return nil, errors.Errorf("a sharding by the axis %q, of %v, each once", name, p.mesh.AxesNames)
			}
			used, p.axes[d] = append(used, name), append(p.axes[d], a)
		}
		if len(names) == 0 {
			continue
		}
		if n := p.count(d); shape.Dimensions[d] < 0 || shape.Dimensions[d]%n != 0 {
			return nil, errors.Errorf("dimension %d of shape %s in %d parts", d, shape, n)
		}
	}
	if used == nil {
		return nil, nil
	}
	if shape.Rank() == tensor.MaxRank {
		return nil, errors.Wrapf(compute.ErrNotImplemented, "parts of shape %s", shape)
	}
	return p, nil
}

// count returns how many parts a dimension has.
func (p *parts) count(d int) int {
	n := 1
	for _, a := range p.axes[d] {
		n *= p.mesh.AxesSizes[a]
	}
	return n
}

// of returns the shape of a part.
func (p *parts) of(shape shapes.Shape) shapes.Shape {
	if p == nil {
		return shape
	}
	shape = shape.Clone()
	for d := range p.axes {
		shape.Dimensions[d] /= p.count(d)
	}
	return shape
}

// at returns which part of each dimension the device with a rank has.
func (p *parts) at(rank int) []int {
	place := slices.Index(p.rank, rank)
	along := make([]int, len(p.mesh.AxesSizes)) // the place on each axis of the mesh
	for a := len(along) - 1; a >= 0; a-- {
		along[a] = place % p.mesh.AxesSizes[a]
		place /= p.mesh.AxesSizes[a]
	}
	list := make([]int, len(p.axes))
	for d, axes := range p.axes {
		for _, a := range axes {
			list[d] = list[d]*p.mesh.AxesSizes[a] + along[a]
		}
	}
	return list
}

// gather returns the whole of an array of which each device has a part.
func (p *parts) gather(x array) array {
	all := rows(x)
	has := map[string]int{} // a rank that has a part
	for rank := range x.Scope().Size() {
		has[fmt.Sprint(p.at(rank))] = rank
	}
	var whole func(at []int) array
	whole = func(at []int) array {
		d := len(at)
		if d == len(p.axes) {
			return all.Narrow(0, has[fmt.Sprint(at)], 1)
		}
		var list []array
		for i := range p.count(d) {
			list = append(list, whole(append(slices.Clone(at), i)))
		}
		if len(list) == 1 {
			return list[0]
		}
		return tensor.Concat(d+1, list...)
	}
	w := whole(nil)
	return w.Reshape(w.Shape()[1:]...)
}

// cut returns this device's part of an array.
func (p *parts) cut(x array) array {
	for d, i := range p.at(x.Scope().Rank()) {
		n := x.Dim(d) / p.count(d)
		x = x.Narrow(d, i*n, n)
	}
	return x
}
