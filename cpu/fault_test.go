//go:build cgo && unix

package cpu

// Faults of kernels: each becomes an error of its stream, and the next launch on a new stream
// works.

import (
	"os/exec"
	"regexp"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/runtime/driver"
	"github.com/concord-compute/concord/source"
)

const faultText = `
kernel void divide(global int *x, int by) { x[get_global_id(0)] = 100 / by; }

kernel void overrun(global int *x, int from) { x[get_global_id(0) + from] = 1; }

kernel void astray(global int *x, long from) { x[from] = 1; }

kernel void underrun(global const int *x, global int *y, int by) { y[0] = x[get_global_id(0) - by]; }

kernel void diverge(global int *x, local int *l) {
  if (get_local_id(0) != 3) barrier(CLK_LOCAL_MEM_FENCE);
  x[get_global_id(0)] = 1;
}

kernel void parted(global int *x) {
  if (get_local_id(0) % 2) barrier(CLK_LOCAL_MEM_FENCE);
  else { x[0] = 1; barrier(CLK_LOCAL_MEM_FENCE); }
}

kernel void overrun_local(global int *x, local int *l, int by) {
  l[by] = x[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  x[0] = l[by];
}

kernel void stack(global int *x) {
  volatile int big[1000000];
  for (int i = 0; i < 1000000; i++) big[i] = i;
  barrier(CLK_LOCAL_MEM_FENCE);
  x[0] = big[x[0]];
}

kernel void divide_fiber(global int *x, int by) {
  barrier(CLK_LOCAL_MEM_FENCE);
  x[get_global_id(0)] = 100 / (get_global_id(0) == 5 ? by : 1);
}

kernel void late(global int *x, long from) {
  if (get_global_id(0) == 5000) x[from] = 1;
}

kernel void fine(global int *x) { x[get_global_id(0)] = get_global_id(0); }

kernel void fine_barrier(global int *x) {
  barrier(CLK_LOCAL_MEM_FENCE);
  x[get_global_id(0)] = get_global_id(0);
}
`

// TestFaultOfRows checks that the error of a call that runs several groups names all of them.
func TestFaultOfRows(t *testing.T) {
	d := openDevice(t)
	k, s := loadKernel(t, d, faultText, "late"), openStream(t, d)
	l := launchOf(k, 1<<20, allocBytes(t, d, 4))
	pass(l, int64(1)<<60)
	require.NoError(t, s.Launch(l))
	err := s.Sync(background(t))
	require.ErrorIs(t, err, driver.ErrLaunch)
	m := regexp.MustCompile(`groups? \((\d+)(?:\.\.(\d+))?,0,0\)`).FindStringSubmatch(err.Error())
	require.NotNil(t, m, err.Error())
	first, _ := strconv.Atoi(m[1])
	last := first
	if m[2] != "" {
		last, _ = strconv.Atoi(m[2])
	}
	assert.LessOrEqual(t, first, 5000, err.Error())
	assert.GreaterOrEqual(t, last, 5000, err.Error())
}

// TestNarrowGridsRunInFewCalls checks that one call runs many rows and planes of groups, for grids
// that have no good group size, and that it runs each item once.
func TestNarrowGridsRunInFewCalls(t *testing.T) {
	needCompiler(t)
	d := openDevice(t)
	s := openStream(t, d)
	k := loadKernel(t, d, `kernel void visit(global int *x, int by) {
		int at = (get_global_id(2) * get_global_size(1) + get_global_id(1)) * get_global_size(0) + get_global_id(0);
		x[at] += 1 + 100 / (at == 30000 ? by : 101);
	}`, "visit")
	for _, grid := range [][3]int{{2, 20011, 1}, {3, 5, 3001}, {1, 1, 40009}, {211, 3, 67}, {101, 401, 1}} {
		n := grid[0] * grid[1] * grid[2]
		x := upload(t, s, make([]int32, n))
		l := &driver.Launch{Kernel: k, Dim: 3, Global: grid, Local: [3]int{1, 1, 1},
			Args: []driver.Arg{{Kind: driver.ArgMemory, Memory: x}}}
		pass(l, int32(101))
		require.NoError(t, s.Launch(l))
		got := make([]int32, n)
		require.NoError(t, s.Download(background(t), bytesOf(got), x))
		for i := range got {
			require.Equal(t, int32(1), got[i], "item %d of %v", i, grid)
		}
	}
	x := upload(t, s, make([]int32, 40022))
	l := &driver.Launch{Kernel: k, Dim: 2, Global: [3]int{2, 20011, 1}, Local: [3]int{1, 1, 1},
		Args: []driver.Arg{{Kind: driver.ArgMemory, Memory: x}}}
	pass(l, int32(0))
	require.NoError(t, s.Launch(l))
	assert.Regexp(t, `division by zero in groups \(0\.\.1,\d+\.\.\d+,0\)`, s.Sync(background(t)).Error())
}

func TestFaults(t *testing.T) {
	d := openDevice(t)
	needCompiler(t)
	u := parse(t, faultText)
	m, err := d.Load(background(t), u, buildProgram(t, d, u))
	require.NoError(t, err)
	defer m.Close()
	const n = 64
	mem := allocBytes(t, d, 4*n)
	fine := func(name string) {
		s := openStream(t, d)
		k, err := m.Kernel(name)
		require.NoError(t, err)
		l := launchOf(k, n, mem)
		l.Local[0] = 16
		require.NoError(t, s.Fill(mem, []byte{0xff}))
		require.NoError(t, s.Launch(l))
		got := make([]int32, n)
		require.NoError(t, s.Download(background(t), bytesOf(got), mem))
		for i, v := range got {
			require.EqualValues(t, i, v)
		}
	}
	for _, c := range []struct {
		kernel string
		local  int
		args   func(l *driver.Launch)
		says   []string
	}{
		{"divide", 16, func(l *driver.Launch) { pass(l, int32(0)) }, []string{"division by zero in group"}},
		{"divide_fiber", 16, func(l *driver.Launch) { pass(l, int32(0)) }, []string{"division by zero in group (0,0,0)"}},
		{"overrun", 16, func(l *driver.Launch) { pass(l, int32(n)) },
			[]string{"bad address 0x", "behind argument 0", "in group ("}},
		{"overrun_local", 16, func(l *driver.Launch) {
			l.Args = append(l.Args, driver.Arg{Kind: driver.ArgLocal, Size: 64})
			pass(l, int32(40)) // 64 bytes are rounded up to 128
		}, []string{" (behind the group's local memory) in group ("}},
		{"overrun", 16, func(l *driver.Launch) { pass(l, int32(1<<30)) }, []string{"bad address 0x"}},
		{"underrun", 16, func(l *driver.Launch) {
			l.Args = append(l.Args, l.Args[0])
			pass(l, int32(1<<10))
		}, []string{"bad address 0x", "before argument"}},
		{"diverge", 16, func(l *driver.Launch) { l.Args = append(l.Args, driver.Arg{Kind: driver.ArgLocal, Size: 64}) },
			[]string{": divergent barrier in group (", "): not all items of the group reached it: kernel failed"}},
		{"parted", 16, func(*driver.Launch) {}, []string{": divergent barrier in group (",
			"): not all items of the group reached it: kernel failed"}},
		{"stack", 16, func(*driver.Launch) {}, []string{"stack overflow in group ("}},
	} {
		t.Run(c.kernel, func(t *testing.T) {
			s := openStream(t, d)
			k, err := m.Kernel(c.kernel)
			require.NoError(t, err)
			l := launchOf(k, n, mem)
			l.Local[0] = c.local
			c.args(l)
			require.NoError(t, s.Launch(l))
			err = s.Sync(background(t))
			require.ErrorIs(t, err, driver.ErrLaunch)
			assert.True(t, strings.HasPrefix(err.Error(), "cpu:0: launch "+c.kernel+" global=(64,1,1) local=(16,1,1): "),
				err.Error())
			for _, what := range c.says {
				assert.Contains(t, err.Error(), what)
			}
			t.Log(err)
			require.Same(t, err, s.Launch(l), "sticky")
			fine("fine")
			fine("fine_barrier")
		})
	}
}

// TestGoFaultsStayGoFaults checks that faults of Go code still panic with the executor's signal
// handlers installed.
func TestGoFaultsStayGoFaults(t *testing.T) {
	loadKernel(t, openDevice(t), saxpyText, "saxpy") // installs the executor's handlers
	var p *int
	assert.PanicsWithError(t, "runtime error: invalid memory address or nil pointer dereference", func() { *p = 1 })
	zero := 0
	assert.PanicsWithError(t, "runtime error: integer divide by zero", func() { zero = 1 / zero })
}

// TestUnknownAddress checks the text for faults without an address: x86 does not report a non-canonical
// address, but does report a null pointer.
func TestUnknownAddress(t *testing.T) {
	if goruntime.GOOS != "linux" || goruntime.GOARCH != "amd64" {
		t.Skip("this system reports the address of every fault")
	}
	d := openDevice(t)
	k := loadKernel(t, d, faultText, "astray")
	mem := allocBytes(t, d, 4)
	b, err := d.memory.bytes(mem)
	require.NoError(t, err)
	base := int64(address(b))
	for from, says := range map[int64]string{1 << 60: "bad address (unknown) in group (0,0,0)",
		-base / 4: "bad address 0x0 in group (0,0,0)"} {
		s := openStream(t, d)
		l := launchOf(k, 1, mem)
		pass(l, from)
		require.NoError(t, s.Launch(l))
		err := s.Sync(background(t))
		require.ErrorIs(t, err, driver.ErrLaunch)
		assert.Contains(t, err.Error(), says)
	}
}

func TestRecursionIsRefused(t *testing.T) {
	_, err := source.Parse("int f(int n) { return n + f(n - 1); } kernel void k(global int *x) { x[0] = f(x[0]); }",
		source.Options{})
	require.Error(t, err)
}

func TestCloseStopsALongLaunch(t *testing.T) {
	d := openDevice(t)
	k := loadKernel(t, d, `
kernel void slow(global int *x) {
  for (volatile int i = 0; i < 1000000; i++) ;
  x[0] = 1;
}`, "slow")
	s := openStream(t, d)
	l := launchOf(k, 1<<20, allocBytes(t, d, 4)) // about half an hour
	require.NoError(t, s.Launch(l))
	time.Sleep(20 * time.Millisecond)
	start := time.Now()
	require.NoError(t, d.Close())
	assert.Less(t, time.Since(start), 10*time.Second)
	require.ErrorIs(t, s.Err(), driver.ErrClosed)
}

func TestPrintfGoesToStandardError(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process")
	}
	if subprocess(t) {
		d := openDevice(t)
		k := loadKernel(t, d, `kernel void hello(int n) { printf("hello %d from %d\n", n, (int)get_global_id(0)); }`, "hello")
		s := openStream(t, d)
		l := launchOf(k, 2)
		pass(l, int32(42))
		require.NoError(t, s.Launch(l))
		require.NoError(t, s.Sync(background(t)))
		return
	}
	needCompiler(t)
	cmd := exec.Command(testProgram, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(cmd.Environ(), "CPU_TEST_CHILD=1")
	var out, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &stderr
	require.NoError(t, cmd.Run(), out.String())
	assert.Contains(t, stderr.String(), "hello 42 from 0\n")
	assert.Contains(t, stderr.String(), "hello 42 from 1\n")
	assert.NotContains(t, out.String(), "hello")
}

// TestFaultsBesideWork checks that faults of some streams do not affect the launches of others.
func TestFaultsBesideWork(t *testing.T) {
	d := openDevice(t)
	needCompiler(t)
	u := parse(t, faultText)
	m, err := d.Load(background(t), u, buildProgram(t, d, u))
	require.NoError(t, err)
	defer m.Close()
	kernels := map[string]driver.Kernel{}
	for _, k := range u.Kernels() {
		kernels[k.Name], err = m.Kernel(k.Name)
		require.NoError(t, err)
	}
	ctx := background(t)
	const n = 256
	var wg sync.WaitGroup
	for i := range 8 {
		mem := allocBytes(t, d, 4*n)
		wg.Go(func() {
			for range 30 {
				ds, err := d.NewStream()
				if !assert.NoError(t, err) {
					return
				}
				l := launchOf(kernels["fine_barrier"], n, mem)
				if i%2 == 1 {
					l.Kernel = kernels[[]string{"divide", "divide_fiber", "overrun", "parted"}[i/2]]
					switch i / 2 {
					case 0, 1:
						pass(l, int32(0))
					case 2:
						pass(l, int32(n))
					}
				}
				l.Local[0] = 32
				assert.NoError(t, ds.Launch(l))
				if i%2 == 1 {
					assert.ErrorIs(t, ds.Sync(ctx), driver.ErrLaunch)
				} else {
					out := make([]int32, n)
					assert.NoError(t, ds.Download(ctx, bytesOf(out), mem))
					assert.EqualValues(t, n-1, out[n-1])
				}
				assert.NoError(t, ds.Close())
			}
		})
	}
	wg.Wait()
}
