package cpu

// References of gather and scatter.

import "math/big"

func init() {
	reference("gather", "gather", refGather)
	reference("scatter", "scatter_last", refScatterLast)
	reference("scatter", "scatter", refScatter)
	reference("scatter", "scatter_add", refScatterAdd)
}

// refGather: out[i] = in[index[i]], rows of n; zeros for an index that is no row.
func refGather(c *Call) error {
	size := refSize(refType(c, "T"))
	get, index, set := refGetBits(c, 0, size), c.U32(1), refSetBits(c, 2, size)
	rows, count, n := int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
	for i := range count {
		for j := range n {
			if row := int(index[i]); row < rows {
				set(i*n+j, get(row*n+j))
			} else {
				set(i*n+j, 0)
			}
		}
	}
	return nil
}

// refScatterLast: last[r] = the largest i + 1 with index[i] = r.
func refScatterLast(c *Call) error {
	index, last, rows := c.U32(0), c.U32(1), int(c.Int(2))
	for i := range int(c.Int(3)) {
		if row := int(index[i]); row < rows {
			last[row] = max(last[row], uint32(i+1))
		}
	}
	return nil
}

// refScatter: out[r] = in[last[r] - 1].
func refScatter(c *Call) error {
	size := refSize(refType(c, "T"))
	get, index, last, set := refGetBits(c, 0, size), c.U32(1), c.U32(2), refSetBits(c, 3, size)
	rows, n := int(c.Int(4)), int(c.Int(6))
	for i := range int(c.Int(5)) {
		if row := int(index[i]); row < rows && last[row] == uint32(i+1) {
			for j := range n {
				set(row*n+j, get(i*n+j))
			}
		}
	}
	return nil
}

// refScatterAdd: out[index[i]] += in[i], rounded once.
func refScatterAdd(c *Call) error {
	t := refType(c, "T")
	index, rows, count, n := c.U32(1), int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
	if !refIsFloat(t) {
		get, old, set := refGetInt(c, 0, t), refGetInt(c, 2, t), refSetInt(c, 2, t)
		eachAdded(index, rows, count, n, func(from, to int) { set(to, new(big.Int).Add(old(to), get(from))) })
		return nil
	}
	get, set := refGet(c, 0, t), refSet(c, 2, t)
	sums := refRead(refGet(c, 2, t), 0, rows*n, 1)
	eachAdded(index, rows, count, n, func(from, to int) { sums[to] += get(from) })
	refWrite(set, sums)
	return nil
}

func eachAdded(index []uint32, rows, count, n int, f func(from, to int)) {
	for i := range count {
		if row := int(index[i]); row < rows {
			for j := range n {
				f(i*n+j, row*n+j)
			}
		}
	}
}
