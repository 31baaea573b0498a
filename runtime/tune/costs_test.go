package tune

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/kernels/expr"
	_ "github.com/concord-compute/concord/opencl"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/tensor"
)

// costsOf are costs of a device with the given nanoseconds; functions have the effort that package expr says.
func costsOf(launch, add float64, moves [4]float64) (list []choice.Cost) {
	for i, name := range costNames() {
		c := choice.Cost{Name: name, Ns: add}
		switch {
		case name == launchCost:
			c.Ns = launch
		case i >= 4 && i < 8:
			c.Ns = moves[i-4]
		case i >= 8 && i < 8+len(costFunctions):
			c.Ns = add * float64(costFunctions[i-8].Effort())
		}
		list = append(list, c)
	}
	return list
}

// The planner's choices follow from the costs: the nearest of their values, also beyond the first and the last.
func TestPlanning(t *testing.T) {
	all := choice.Of("tensor")
	values := planning(costsOf(500, 0.05, [4]float64{0.1, 0.15, 0.25, 0.6}), all)
	assert.Equal(t, map[string]int{"tensor.task": 10000, "tensor.move.1m": 2, "tensor.move.4m": 3, "tensor.move.16m": 5,
		"tensor.move.more": 12, "tensor.functions": 100, "tensor.many": 4096}, values, "those of the defaults")
	assert.Len(t, values, len(all), "every choice of the planner is measured")

	dear := planning(costsOf(50000, 0.05, [4]float64{0.1, 0.15, 0.25, 0.6}), all)
	assert.Equal(t, 1000000, dear["tensor.task"])
	assert.Equal(t, 524288, dear["tensor.many"])
	slow := planning(costsOf(500, 0.05, [4]float64{0.1, 0.2, 0.45, 1e9}), all)
	assert.Equal(t, []int{2, 5, 8, 200}, []int{slow["tensor.move.1m"], slow["tensor.move.4m"], slow["tensor.move.16m"],
		slow["tensor.move.more"]})
	busy := planning(costsOf(500, 0.05, [4]float64{0.1, 0.3, 0.15, 0.6}), all)
	assert.Equal(t, []int{2, 3, 3, 12}, []int{busy["tensor.move.1m"], busy["tensor.move.4m"], busy["tensor.move.16m"],
		busy["tensor.move.more"]}, "the machine was busy during the second")
	functional := costsOf(500, 0.05, [4]float64{0.1, 0.15, 0.25, 0.6})
	for i := range functional {
		if i >= 8 && i < 8+len(costFunctions) {
			functional[i].Ns *= 2
		}
	}
	assert.Equal(t, 200, planning(functional, all)["tensor.functions"])
	for _, v := range []map[string]int{values, dear, slow} {
		_, err := choice.NewSet(v)
		require.NoError(t, err)
	}
	assert.Empty(t, planning(costsOf(500, 0.05, [4]float64{0.1, 0.15, 0.25, 0.6}), nil))
}

func TestCostsAnswer(t *testing.T) {
	q := request{Subject: costsName}
	good := costsOf(1, 1, [4]float64{1, 1, 1, 1})
	assert.True(t, (&answer{Costs: good}).answers(q))
	for _, change := range []func(list []choice.Cost) []choice.Cost{
		func([]choice.Cost) []choice.Cost { return nil },
		func(list []choice.Cost) []choice.Cost { return list[1:] },
		func(list []choice.Cost) []choice.Cost { return append(list, list[0]) },
		func(list []choice.Cost) []choice.Cost { list[3].Ns = 0; return list },
		func(list []choice.Cost) []choice.Cost { list[3].Ns = math.NaN(); return list },
		func(list []choice.Cost) []choice.Cost { list[3].Ns = infinite; return list },
		func(list []choice.Cost) []choice.Cost { list[0], list[1] = list[1], list[0]; return list },
	} {
		assert.False(t, (&answer{Costs: change(slices.Clone(good))}).answers(q))
	}
}

// planned is a graph whose plan depends on costs, with results between 0 and 1.
func planned(s *tensor.Scope) *tensor.Tensor {
	sine := tensor.Iota(s, tensor.F32, 200, 300).Mul(0.01).T().Sin()
	return sine.T().Mul(sine.T().Square().Mean(0)).Abs()
}

// What is measured on a device are times, and the values that follow are in the ranges of the choices. The device plans
// by them, and the results are those of before.
func TestCostsOfDevices(t *testing.T) {
	for _, name := range []string{"cpu:0", "opencl:0"} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "cpu:0" {
				t.Skip("maps are compiled")
			}
			session, err := runtime.New(runtime.Config{Validate: -1, Tune: "off"})
			require.NoError(t, err)
			defer session.Close()
			dev, err := session.Open(t.Context(), name)
			if err != nil && name != "cpu:0" {
				t.Skip(err)
			}
			require.NoError(t, err)
			defer dev.Close()
			s := tensor.NewScope(dev)
			defer s.Close()
			want, err := tensor.Read[float32](t.Context(), planned(s))
			require.NoError(t, err)

			live := dev.Stats().LiveBuffers
			var points []string
			m := &measurement{session: session, dev: dev, doing: func(p string) error {
				points = append(points, p)
				return nil
			}}
			costs, err := m.costs(t.Context())
			require.NoError(t, err)
			assert.Equal(t, costNames(), points)
			assert.Equal(t, live, dev.Stats().LiveBuffers, "nothing is left open")
			require.True(t, (&answer{Costs: costs}).answers(request{Subject: costsName}), "%+v", costs)
			ns := map[string]float64{}
			for _, c := range costs {
				ns[c.Name] = c.Ns
				t.Logf("%+v", c)
				assert.Less(t, c.Ns, 1e9, c.Name)
				assert.LessOrEqual(t, c.Low, c.Ns, c.Name)
				assert.LessOrEqual(t, c.Ns, c.High, c.Name)
				assert.NotEmpty(t, c.Of)
			}
			assert.Less(t, ns[addCost], ns[expr.Sin.String()], "which takes some fifty times as long")
			table := dev.Choices().New(planning(costs, dev.Choices().Choices()))
			t.Log(table.Values)
			assert.Len(t, table.Values, len(choice.Of("tensor")))
			require.NoError(t, dev.Choices().Use(table))
			p, err := tensor.Explain(planned(s))
			require.NoError(t, err)
			assert.Equal(t, table.Made, p.Costs.Measured)
			assert.Equal(t, table.Values["tensor.task"], p.Costs.Task)
			got, err := tensor.Read[float32](t.Context(), planned(s))
			require.NoError(t, err)
			assert.InDeltaSlice(t, want, got, 1e-5)
		})
	}
}

// The tuner has a child measure costs, and the table of the whole has their values beside others.
func TestRunCosts(t *testing.T) {
	dev := plantedDev(t)
	var told []Progress
	table, err := Run(t.Context(), dev, Options{Command: self, Only: []string{costsName},
		Progress: func(p Progress) { told = append(told, p) }})
	require.NoError(t, err)
	require.Len(t, table.Trials, 1)
	trial := table.Trials[0]
	require.Empty(t, trial.Failed)
	assert.Len(t, trial.Costs, len(costNames()))
	assert.Equal(t, table.Values, trial.Values)
	assert.ElementsMatch(t, []string{"tensor.task", "tensor.move.1m", "tensor.move.4m", "tensor.move.16m",
		"tensor.move.more", "tensor.functions", "tensor.many"}, slices.Collect(maps.Keys(table.Values)))
	require.NoError(t, dev.Choices().Check(table))
	require.Len(t, told, 1)
	assert.Equal(t, 1, told[0].Subjects)
}

// A kernel that computes wrongly is not measured.
func TestCostsOfWrongKernels(t *testing.T) {
	dev := plantedDev(t)
	dev.Driver().(*plantedDevice).wrong.Store(true)
	m := &measurement{session: dev.Session(), dev: dev, doing: func(string) error { return nil }}
	_, err := m.costs(t.Context())
	require.ErrorContains(t, err, "launch: wrong result: ")
	assert.Zero(t, dev.Stats().LiveBuffers)
}

// Functions that stand for all have an effort to be compared with.
func TestFunctions(t *testing.T) {
	for _, f := range costFunctions {
		assert.Greater(t, f.Effort(), expr.Add.Effort(), f)
	}
}
