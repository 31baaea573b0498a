package kernels

// The amount of work of launches, for profiles.

import "github.com/concord-compute/concord/source"

// work implements source.Options.Work for the programs of the family. Arguments that do not make sense have no
// known work; the launch itself refuses them.
func (f *Family) work(u *source.Unit, k *source.Kernel, global [3]int, values [][]byte) (operations, bytes float64) {
	if f.Arguments == nil && f.Work == nil {
		return 0, 0
	}
	defer func() {
		if r := recover(); r != nil {
			if _, wrong := r.(ArgumentError); !wrong {
				panic(r)
			}
			operations, bytes = 0, 0
		}
	}()
	c := Call{Unit: u, Kernel: k.Name, Params: k.Params, Global: global, Args: make([]Argument, len(values)), weighs: true}
	for i, v := range values {
		c.Args[i].Bytes = v
		if v == nil {
			c.Args[i].Kind = BufferArgument
		}
	}
	if f.Arguments != nil && !f.Arguments(&c) {
		return 0, 0
	}
	if f.Work == nil {
		return 0, c.needed
	}
	return f.Work(&c, c.needed)
}

// unused returns the bytes of the rows of n elements in a table of rows rows that a launch which names count of
// them cannot have used.
func (c *Call) unused(rows, count, n int) float64 {
	return float64(max(rows-count, 0)) * float64(n) * float64(SizeOf(c.Type("T")))
}
