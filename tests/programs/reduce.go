package programs

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// quoted matches names and numbers in an error, which change while a program is reduced.
var quoted = regexp.MustCompile("['‘\"`][^'’\"`]*['’\"`]|[0-9]+")

// Reduce makes the program of a difference smaller as long as the two targets still differ in the
// same way: it removes parts, launches and statements, and replaces expressions by operands and
// constants. It stops after about limit.
func Reduce(pool *Pool, d *Difference, limit time.Duration) *Difference {
	r := &reducer{pool: pool, best: d, kind: d.kindOf(), end: time.Now().Add(limit)}
	r.alone()
	for before := -1; before != r.kept && time.Now().Before(r.end); {
		before = r.kept
		r.launches()
		r.parts()
		for _, p := range d.Program.parts {
			if p.body != nil && !p.dropped {
				r.statements(p.body)
			}
		}
		for _, p := range d.Program.parts {
			if p.body != nil && !p.dropped {
				r.expressions(p.body)
			}
		}
	}
	return r.best
}

type reducer struct {
	pool *Pool
	best *Difference
	kind string
	end  time.Time
	kept int
}

// keep reports whether the current program still differs in the same way.
func (r *reducer) keep() bool {
	if time.Now().After(r.end) {
		return false
	}
	// The target that fails runs first: if it does not fail any more, the other need not run.
	for i, t := range r.best.Targets {
		if r.best.Results[i].Err != "" && r.best.Results[1-i].Err == "" && r.pool.Run(t, r.best.Program).Err == "" {
			return false
		}
	}
	d := r.pool.Try(r.best.Program, r.best.Targets[:])
	if d == nil || d.kindOf() != r.kind {
		return false
	}
	r.best, r.kept = d, r.kept+1
	return true
}

// alone keeps only the launch in which values differ, and its kernel.
func (r *reducer) alone() {
	p := r.best.Program
	saved := p.Launches
	if r.best.At < 0 {
		return
	}
	p.Launches = saved[r.best.At : r.best.At+1 : r.best.At+1]
	var dropped []*part
	for _, part := range p.parts {
		if part.kernel && part.name != p.Launches[0].Kernel {
			part.dropped = true
			dropped = append(dropped, part)
		}
	}
	if !r.keep() {
		p.Launches = saved
		for _, part := range dropped {
			part.dropped = false
		}
	}
}

func (r *reducer) launches() {
	p := r.best.Program
	for i := len(p.Launches) - 1; i >= 0 && len(p.Launches) > 1; i-- {
		saved := p.Launches
		p.Launches = slices.Delete(slices.Clone(saved), i, i+1)
		if !r.keep() {
			p.Launches = saved
		}
	}
}

// parts removes kernels with their launches first, and then all other parts that are not needed.
func (r *reducer) parts() {
	p := r.best.Program
	for _, part := range slices.Backward(p.parts) {
		if part.dropped {
			continue
		}
		saved := p.Launches
		part.dropped = true
		p.Launches = slices.DeleteFunc(slices.Clone(saved), func(l Launch) bool { return l.Kernel == part.name })
		if len(p.Launches) == 0 && len(saved) > 0 || !r.keep() {
			part.dropped, p.Launches = false, saved
		}
	}
}

// statements removes statements, halves of a block first, or replaces a statement by its blocks.
func (r *reducer) statements(b *block) {
	for size := len(b.list); size > 0; size /= 2 {
		for at := 0; at < len(b.list); at += size {
			var dropped []*stmt
			for _, s := range b.list[at:min(at+size, len(b.list))] {
				if !s.fixed && !s.dropped {
					s.dropped = true
					dropped = append(dropped, s)
				}
			}
			if len(dropped) > 0 && !r.keep() {
				for _, s := range dropped {
					s.dropped = false
				}
			}
		}
	}
	for _, s := range b.list {
		if s.dropped || len(s.blocks) == 0 {
			continue
		}
		if !s.hoisted && !s.fixed {
			if s.hoisted = true; !r.keep() {
				s.hoisted = false
			}
		}
		for _, inner := range s.blocks {
			r.statements(inner)
		}
	}
}

func (r *reducer) expressions(b *block) {
	for _, s := range b.list {
		if s.dropped {
			continue
		}
		if !s.hoisted {
			for _, e := range s.args {
				r.expression(e)
			}
		}
		for _, inner := range s.blocks {
			r.expressions(inner)
		}
	}
}

// expression replaces an expression by a smaller one, and continues with its operands.
func (r *reducer) expression(e *expr) {
	if len(e.args) == 0 && !strings.Contains(e.form, "(") {
		return
	}
	saved := *e
	try := func(smaller expr) bool {
		if *e = smaller; r.keep() {
			return true
		}
		*e = saved
		return false
	}
	one := "(" + e.t.String() + ")1"
	if e.t.n > 1 {
		one = "(" + e.t.String() + ")(1)"
	}
	if e.form != one && try(expr{t: e.t, form: one}) {
		return
	}
	for _, a := range saved.args {
		if a.t == e.t && try(*a) {
			r.expression(e)
			return
		}
	}
	for _, a := range e.args {
		r.expression(a)
	}
}
