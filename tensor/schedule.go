package tensor

// The fourth pass: the order of the tasks; and what depends on what among them, while tasks are fused.

import (
	"cmp"
	"fmt"
	"slices"
)

// schedule puts the tasks into an order in which values are written before they are read, and filled before parts of
// them are stored. Collectives start as soon as they can, and what needs their results comes as late as it can.
func schedule(p taskList) (taskList, error) {
	writers := map[*value][]int{}
	for i, t := range p.tasks {
		_, out := t.values()
		for _, v := range out {
			writers[v] = append(writers[v], i)
		}
	}
	const visiting, done = 1, 2
	state := make([]int8, len(p.tasks))
	list := make([]task, 0, len(p.tasks))
	var visit func(i int) error
	visit = func(i int) error {
		t := p.tasks[i]
		switch state[i] {
		case visiting:
			return fmt.Errorf("tensor: task %v depends on itself", t)
		case done:
			return nil
		}
		state[i] = visiting
		in, out := t.values()
		for _, v := range in {
			for _, w := range writers[v] {
				if w != i {
					if err := visit(w); err != nil {
						return err
					}
				}
			}
		}
		for _, v := range out {
			for _, w := range writers[v] {
				if k, ok := p.tasks[w].(*kernel); ok && k.fills && w != i {
					if err := visit(w); err != nil {
						return err
					}
				}
			}
		}
		state[i] = done
		list = append(list, t)
		return nil
	}
	first := startsOf(p.tasks)
	for _, i := range append(first, counts(0, len(p.tasks))...) {
		if err := visit(i); err != nil {
			return taskList{}, err
		}
	}
	if len(first) > 0 {
		list = overlapping(list)
	}
	return taskList{p.storage, list}, nil
}

// dependencies knows the tasks that write and read values. A task has a higher number than those that it needs.
type dependencies struct {
	writers, readers map[*value][]task
	number           map[task]int
}

// mostSteps is how many tasks are looked at to find whether one needs another.
const mostSteps = 256

// dependenciesOf returns the dependencies of tasks, each of which comes after those that it needs.
func dependenciesOf(tasks []task) *dependencies {
	d := &dependencies{map[*value][]task{}, map[*value][]task{}, map[task]int{}}
	for i, t := range tasks {
		d.number[t] = i << 20 // so that there is room between two
		d.add(t)
	}
	return d
}

func (d *dependencies) add(t task) {
	in, out := t.values()
	for _, v := range in {
		if !v.have {
			d.readers[v] = append(d.readers[v], t)
		}
	}
	for _, v := range out {
		d.writers[v] = append(d.writers[v], t)
	}
}

// circular reports whether k, in the place of a and of b, would need itself: whether something that k reads needs a or
// b. It may say so wrongly where there is much to look at.
func (d *dependencies) circular(a, b, k task) bool {
	seen, least := map[task]bool{}, min(d.number[a], d.number[b])
	for list := []task{k}; len(list) > 0; {
		t := list[len(list)-1]
		list = list[:len(list)-1]
		in, _ := t.values()
		for _, v := range in {
			for _, w := range d.writers[v] {
				if w == a || w == b || len(seen) > mostSteps {
					return true
				}
				if !seen[w] && d.number[w] > least {
					seen[w] = true
					list = append(list, w)
				}
			}
		}
	}
	return false
}

// related returns a function that reports whether b needs a, or a needs b. It may say so wrongly where there is much to
// look at.
func (d *dependencies) related(b task) func(a task) bool {
	needed := map[task]bool{}
	next := []task{b} // by number: the last is looked at first, so that all that b needs down to its number is known
	return func(a task) bool {
		if d.number[a] >= d.number[b] {
			return d.circular(a, b, a)
		}
		for len(next) > 0 && len(needed) <= mostSteps && d.number[next[len(next)-1]] > d.number[a] {
			t := next[len(next)-1]
			next = next[:len(next)-1]
			in, _ := t.values()
			for _, v := range in {
				for _, w := range d.writers[v] {
					if !needed[w] {
						needed[w] = true
						i, _ := slices.BinarySearchFunc(next, d.number[w], func(x task, n int) int { return cmp.Compare(d.number[x], n) })
						next = slices.Insert(next, i, w)
					}
				}
			}
		}
		return needed[a] || len(needed) > mostSteps
	}
}

// replace puts k in the place of a and b, which is not circular.
func (d *dependencies) replace(a, b, k task) {
	for _, t := range []task{a, b} {
		in, out := t.values()
		for _, v := range in {
			d.readers[v] = slices.DeleteFunc(d.readers[v], func(x task) bool { return x == t })
		}
		for _, v := range out {
			d.writers[v] = slices.DeleteFunc(d.writers[v], func(x task) bool { return x == t })
		}
	}
	d.add(k)
	d.number[k] = max(d.number[a], d.number[b])
	in, _ := k.values()
	for _, v := range in { // k may read what a and b computed for themselves
		for _, w := range d.writers[v] {
			d.number[k] = max(d.number[k], d.number[w]+1)
		}
	}
	for list := []task{k}; len(list) > 0; { // the other readers of what a wrote may have lower numbers
		t := list[len(list)-1]
		list = list[:len(list)-1]
		_, out := t.values()
		for _, v := range out {
			for _, r := range d.readers[v] {
				if d.number[r] <= d.number[t] {
					d.number[r] = d.number[t] + 1
					list = append(list, r)
				}
			}
		}
	}
}
