package tensor

// What depends on what among the tasks of a plan, while tasks are merged.

import "slices"

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

// between reports whether a task needs a, and b needs that task. It may say so wrongly where there is much to look at.
func (d *dependencies) between(a, b task) bool {
	seen := map[task]bool{a: true, b: true}
	var list []task
	visit := func(t task) (found bool) {
		in, _ := t.values()
		for _, v := range in {
			for _, w := range d.writers[v] {
				if found = found || w == a && t != b; !seen[w] && d.number[w] > d.number[a] {
					seen[w] = true
					list = append(list, w)
				}
			}
		}
		return found
	}
	for visit(b); len(list) > 0; {
		t := list[len(list)-1]
		list = list[:len(list)-1]
		if visit(t) || len(seen) > mostSteps {
			return true
		}
	}
	return false
}

// replace puts k in the place of a and b, where b needs a and nothing is between them.
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
	d.number[k] = d.number[b]
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
