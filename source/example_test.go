package source_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/concord-compute/concord/source"
)

const scale = `
kernel void scale(global float *x, float by, uint n) {
	uint i = get_global_id(0);
	if (i < n)
		x[i] *= by;
}`

// Parsing needs no device and no compiler.
func ExampleParse() {
	unit, err := source.Parse(scale, source.Options{Name: "scale.cl"})
	if err != nil {
		log.Fatal(err)
	}
	for _, k := range unit.Kernels() {
		fmt.Println("kernel", k.Name)
		for _, p := range k.Params {
			fmt.Println(" ", p.Name, "is", p.Decl)
		}
	}
	// Output:
	// kernel scale
	//   x is global float *
	//   by is float
	//   n is uint
}

// One program is rendered for every kind of device.
func ExampleUnit_Render() {
	unit, err := source.Parse(scale, source.Options{})
	if err != nil {
		log.Fatal(err)
	}
	for _, target := range []source.Target{source.OpenCL, source.CUDA, source.HIP, source.Metal} {
		text, err := unit.Render(target)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(target, strings.Contains(text, source.EntryPrefix+"scale"))
	}
	// Output:
	// opencl false
	// cuda true
	// hip true
	// metal true
}

// A kernel may have a text in a vendor's language, which takes the place of the rendering.
func ExampleOptions() {
	const portable = `
kernel void saxpy(float a, global const float *x, global float *y, uint n) {
	uint i = get_global_id(0);
	if (i < n)
		y[i] += a * x[i];
}`
	const cuda = `
extern "C" __global__ void saxpy(float a, const float *x, float *y, unsigned n) {
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		y[i] += a * __ldg(x + i);
}
`
	unit, err := source.Parse(portable, source.Options{Name: "saxpy.cl",
		Native: map[source.Target]source.File{source.CUDA: {Name: "saxpy.cu", Text: cuda}}})
	if err != nil {
		log.Fatal(err)
	}
	for _, target := range []source.Target{source.CUDA, source.HIP} {
		text, err := unit.Render(target)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(target, strings.Contains(text, "__ldg"))
	}
	// Output:
	// cuda true
	// hip false
}

// All mistakes are found at once, each with its place.
func ExampleErrorList() {
	_, err := source.Parse(`
kernel void scale(global float *x, uint n) {
	uint i = get_global_id(0);
	if (i < n)
		x[i] *= by;
	x.s = 1;
}`, source.Options{Name: "scale.cl"})
	fmt.Println(err)
	// Output:
	// scale.cl:5:11: 'by' is not declared
	// scale.cl:6:4: 'global float *' has no members
}
