package bench

// Whether a measurement is slower than an earlier one, or differs from it only as two measurements
// of the same do.

import (
	"math"
	"math/rand/v2"
	"slices"
)

const (
	fewestRounds = 8    // with fewer there is no telling how much rounds differ
	leastNoise   = 0.04 // differences below it are never reported: memory lies elsewhere in the next process
	safety       = 1.5  // on the noise, which is an estimate
)

// usual is the cost of a run: the second best of its rounds. What else the machine does only makes
// rounds slower, so that the fast ones say most; the very fastest may be luck.
func usual(costs []float64) float64 {
	first, second := math.Inf(1), math.Inf(1)
	for _, c := range costs {
		if c < first {
			first, second = c, first
		} else {
			second = min(second, c)
		}
	}
	return second
}

// exceeded is the bootstrap of Efron (1979). Values are drawn from all at random, with replacement, as many as there
// are. Of 100 differences between what was drawn, it returns the one that two exceed. The random numbers are always
// the same, so that the result depends on the values alone. draw's list is valid until the next one.
func exceeded(values []float64, difference func(draw func() []float64) float64) float64 {
	random := rand.New(rand.NewPCG(1, 2))
	drawn, differences := make([]float64, len(values)), make([]float64, 100)
	for i := range differences {
		differences[i] = math.Abs(difference(func() []float64 {
			for i := range drawn {
				drawn[i] = values[random.IntN(len(values))]
			}
			return drawn
		}))
	}
	slices.Sort(differences)
	return differences[len(differences)-3]
}

// noise is by how much a run differs from another one of the same, as the logarithm of a ratio.
func noise(costs []float64) float64 {
	return exceeded(costs, func(draw func() []float64) float64 { return math.Log(usual(draw()) / usual(draw())) })
}

// judged is a comparison. Both are relative: 0.1 is a tenth slower.
type judged struct{ change, noise float64 }

// slower and faster report whether the difference exceeds the noise.
func (j judged) slower() bool { return math.Log1p(j.change) > math.Log1p(j.noise) }
func (j judged) faster() bool { return math.Log1p(j.change) < -math.Log1p(j.noise) }

// compareCosts compares the costs of the rounds of two runs. All are positive.
func compareCosts(before, now []float64) judged {
	limit := max(math.Log1p(leastNoise), safety*max(noise(before), noise(now)))
	return judged{usual(now)/usual(before) - 1, math.Expm1(limit)}
}

// median is the middle of a list, which it sorts.
func median(list []float64) float64 {
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

// compareInTurn compares the costs of rounds that were measured in turn, the first before with the first
// now. What else the machine did then slowed both of a pair, or one of them as often as the other. So
// the median of their ratios says how they differ. The medians of ratios drawn from them at random say by how
// much that may be wrong. Where rounds are slowed one by one, the fast rounds of
// both say more, and compareCosts is less noisy: what is less noisy counts.
func compareInTurn(before, now []float64) judged {
	ratios := make([]float64, min(len(before), len(now)))
	for i := range ratios {
		ratios[i] = math.Log(now[i] / before[i])
	}
	change := median(ratios)
	wrong := exceeded(ratios, func(draw func() []float64) float64 { return median(draw()) - change })
	limit := max(math.Log1p(leastNoise), safety*wrong)
	inTurn, apart := judged{math.Expm1(change), math.Expm1(limit)}, compareCosts(before, now)
	if apart.noise < inTurn.noise {
		return apart
	}
	return inTurn
}
