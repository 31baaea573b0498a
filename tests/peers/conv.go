package main

// Convolution, beside PyTorch, which leaves it to oneDNN.

func (b *bench) convolution() error {
	const n, c, h, w, k, filter = 8, 64, 56, 56, 64, 3
	one := uint32(1)
	p, err := b.prepare("conv2d", nil, "conv2d", uint32(n), uint32(c), uint32(h), uint32(w), uint32(k), uint32(filter), uint32(filter),
		one, one, one, one, one, one, one, uint32(h), uint32(w), 4*n*c*h*w, 4*k*c*filter*filter, 4, 4*n*k*h*w)
	if err != nil {
		return b.absent("8×64×56×56", err)
	}
	defer p.free()
	for _, x := range p.buffers[:3] {
		randomize(x, false)
	}
	args := map[string]any{"n": n, "c": c, "h": h, "w": w, "out": k, "kernel": filter}
	rows, err := b.peer("torch", args, "conv2d")
	if err != nil {
		return err
	}
	// The same work on data in another order, which oneDNN likes better; its process
	// holds one call at a time, so it has a row of its own.
	s := subject{what: "8×64×56×56 by 3×3", work: 2 * n * k * c * filter * filter * h * w, unit: gflops, name: p.name, run: p.run}
	if err := b.compare(s, rows, b.peak(4)); err != nil {
		return err
	}
	last, err := b.peer("torch", args, "conv2d_last")
	if err != nil {
		return err
	}
	last.name += ", channels last"
	return b.compare(s, last)
}
