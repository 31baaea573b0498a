package tensor

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// fakeTask reads and writes values.
type fakeTask struct {
	name    string
	in, out []*value
}

func (f *fakeTask) String() string             { return f.name }
func (f *fakeTask) values() (in, out []*value) { return f.in, f.out }

// A merged kernel may read what its parts computed for themselves, also something with a higher number than
// both, and what others read from the first part may have lower numbers than the second.
func TestDependencies(t *testing.T) {
	v := make([]*value, 6)
	for i := range v {
		v[i] = &value{}
	}
	p := &fakeTask{"p", nil, v[:1]}
	a := &fakeTask{"a", v[:1], v[1:2]}
	early := &fakeTask{"early", v[1:2], v[2:3]} // reads a, with a lower number than b
	b := &fakeTask{"b", []*value{v[0], v[1]}, v[3:4]}
	late := &fakeTask{"late", v[:1], v[4:5]} // needs neither a nor b
	last := &fakeTask{"last", []*value{v[2], v[3]}, v[5:6]}
	d := dependenciesOf([]task{p, a, early, b, late, last})
	assert.True(t, d.circular(a, b, &fakeTask{"k", []*value{v[0], v[2]}, []*value{v[1], v[3]}}), "early needs a")
	assert.True(t, d.circular(a, b, &fakeTask{"k", []*value{v[5]}, []*value{v[1], v[3]}}), "last needs b")
	k := &fakeTask{"k", []*value{v[0], v[4]}, []*value{v[1], v[3]}}
	assert.False(t, d.circular(a, b, k))
	d.replace(a, b, k)
	for _, x := range []task{p, early, k, late, last} {
		in, _ := x.values()
		for _, v := range in {
			for _, w := range d.writers[v] {
				assert.Less(t, d.number[w], d.number[x], "%v needs %v", x, w)
			}
		}
	}
	assert.Equal(t, []task{k}, d.writers[v[1]])
	assert.ElementsMatch(t, []task{early}, d.readers[v[1]])
}
