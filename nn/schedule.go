package nn

// Schedules of the learning rate.

import (
	"fmt"
	"math"
)

// Schedule gives the learning rate from the configured one, base.
type Schedule interface {
	// Rate returns the rate after t epochs, or after t steps if PerStep. losses are those that early stopping
	// watches, one for each epoch.
	Rate(base float64, t int, losses []float64) float64
	// PerStep says whether t counts steps rather than epochs.
	PerStep() bool
	// String has the name and all settings. An error is one of settings that make no sense.
	String() string
	Check() error
}

type (
	// StepDecay multiplies the rate by Gamma every Size epochs.
	StepDecay struct {
		Size  int     // 0 is 10
		Gamma float64 // positive; 0 is 0.1
	}
	// Exponential multiplies the rate by Gamma at every epoch.
	Exponential struct {
		Gamma float64 // positive; 0 is 0.95
	}
	// Cosine falls from base to Min along a cosine over Period epochs, and begins again.
	Cosine struct {
		Period int     // required
		Min    float64 // not negative; 0 is 0
	}
	// Plateau multiplies the rate by Factor, down to Min, after Patience epochs in which the loss was not less
	// than ever before.
	Plateau struct {
		Factor   float64 // less than 1; 0 is 0.1
		Patience int     // 0 is 10
		Min      float64 // not negative; 0 is 0
	}
	// Polynomial is (base - End)·max(0, 1 - t/Total)^Power + End.
	Polynomial struct {
		Total int     // epochs; required
		Power float64 // positive; 0 is 1
		End   float64 // not negative; 0 is 0
	}
	// Cyclic rises from base to Max in StepUp steps and falls again in as many, over and over.
	Cyclic struct {
		Max    float64 // positive; required
		StepUp int     // 0 is 2000
	}
	// OneCycle rises from base to Max in the first Start·Total steps and falls back to base until step Total.
	OneCycle struct {
		Max    float64 // positive; required
		Total  int     // steps; required
		Start  float64 // less than 1; 0 is 0.3
		Cosine bool    // the fall is along a cosine; false is evenly
	}
)

// filled returns a schedule with its defaults in place of zeros.
func (s StepDecay) filled() StepDecay {
	s.Size, s.Gamma = or(s.Size, 10), or(s.Gamma, 0.1)
	return s
}

func (s Exponential) filled() Exponential {
	s.Gamma = or(s.Gamma, 0.95)
	return s
}

func (s Plateau) filled() Plateau {
	s.Factor, s.Patience = or(s.Factor, 0.1), or(s.Patience, 10)
	return s
}

func (s Polynomial) filled() Polynomial {
	s.Power = or(s.Power, 1)
	return s
}

func (s Cyclic) filled() Cyclic {
	s.StepUp = or(s.StepUp, 2000)
	return s
}

func (s OneCycle) filled() OneCycle {
	s.Start = or(s.Start, 0.3)
	return s
}

// Rate returns the rate.
func (s StepDecay) Rate(base float64, t int, _ []float64) float64 {
	s = s.filled()
	return base * math.Pow(s.Gamma, float64(t/s.Size))
}

// Rate returns the rate.
func (s Exponential) Rate(base float64, t int, _ []float64) float64 {
	return base * math.Pow(s.filled().Gamma, float64(t))
}

// Rate returns the rate.
func (s Cosine) Rate(base float64, t int, _ []float64) float64 {
	return s.Min + (base-s.Min)*(1+math.Cos(math.Pi*float64(t%s.Period)/float64(s.Period)))/2
}

// Rate returns the rate. It follows from the losses alone.
func (s Plateau) Rate(base float64, _ int, losses []float64) float64 {
	s = s.filled()
	rate, best, bad := base, math.Inf(1), 0
	for _, l := range losses {
		if l < best {
			best, bad = l, 0
		} else if bad++; bad >= s.Patience {
			rate, bad = max(rate*s.Factor, min(s.Min, rate)), 0
		}
	}
	return rate
}

// Rate returns the rate.
func (s Polynomial) Rate(base float64, t int, _ []float64) float64 {
	return (base-s.End)*math.Pow(max(0, 1-float64(t)/float64(s.Total)), s.filled().Power) + s.End
}

// Rate returns the rate.
func (s Cyclic) Rate(base float64, t int, _ []float64) float64 {
	s = s.filled()
	at := t % (2 * s.StepUp)
	return base + (s.Max-base)*(1-math.Abs(float64(at)/float64(s.StepUp)-1))
}

// Rate returns the rate.
func (s OneCycle) Rate(base float64, t int, _ []float64) float64 {
	s = s.filled()
	top := s.Start * float64(s.Total)
	x := float64(min(t, s.Total))
	if x <= top {
		return base + (s.Max-base)*x/top
	}
	x = (x - top) / (float64(s.Total) - top)
	if s.Cosine {
		x = (1 - math.Cos(math.Pi*x)) / 2
	}
	return s.Max + (base-s.Max)*x
}

// PerStep returns false.
func (StepDecay) PerStep() bool { return false }

// PerStep returns false.
func (Exponential) PerStep() bool { return false }

// PerStep returns false.
func (Cosine) PerStep() bool { return false }

// PerStep returns false.
func (Plateau) PerStep() bool { return false }

// PerStep returns false.
func (Polynomial) PerStep() bool { return false }

// PerStep returns true.
func (Cyclic) PerStep() bool { return true }

// PerStep returns true.
func (OneCycle) PerStep() bool { return true }

// valid returns an error of a schedule if a setting makes no sense.
func valid(s Schedule, ok bool) error {
	if !ok {
		return fmt.Errorf("%w: %v", ErrConfig, s)
	}
	return nil
}

// Check returns an error if a setting makes no sense.
func (s StepDecay) Check() error { return valid(s, s.Size >= 0 && s.Gamma >= 0) }

// Check returns an error if a setting makes no sense.
func (s Exponential) Check() error { return valid(s, s.Gamma >= 0) }

// Check returns an error if a setting makes no sense.
func (s Cosine) Check() error { return valid(s, s.Period > 0 && s.Min >= 0) }

// Check returns an error if a setting makes no sense.
func (s Plateau) Check() error {
	return valid(s, s.Factor >= 0 && s.Factor < 1 && s.Patience >= 0 && s.Min >= 0)
}

// Check returns an error if a setting makes no sense.
func (s Polynomial) Check() error { return valid(s, s.Total > 0 && s.Power >= 0 && s.End >= 0) }

// Check returns an error if a setting makes no sense.
func (s Cyclic) Check() error { return valid(s, s.Max > 0 && s.StepUp >= 0) }

// Check returns an error if a setting makes no sense.
func (s OneCycle) Check() error {
	return valid(s, s.Max > 0 && s.Total > 0 && s.Start >= 0 && s.Start < 1)
}

// String has the name and the settings.
func (s StepDecay) String() string {
	s = s.filled()
	return described("step", "size", s.Size, "gamma", s.Gamma)
}

// String has the name and the settings.
func (s Exponential) String() string { return described("exponential", "gamma", s.filled().Gamma) }

// String has the name and the settings.
func (s Cosine) String() string { return described("cosine", "period", s.Period, "min", s.Min) }

// String has the name and the settings.
func (s Plateau) String() string {
	s = s.filled()
	return described("plateau", "factor", s.Factor, "patience", s.Patience, "min", s.Min)
}

// String has the name and the settings.
func (s Polynomial) String() string {
	return described("polynomial", "total", s.Total, "power", s.filled().Power, "end", s.End)
}

// String has the name and the settings.
func (s Cyclic) String() string { return described("cyclic", "max", s.Max, "up", s.filled().StepUp) }

// String has the name and the settings.
func (s OneCycle) String() string {
	return described("one_cycle", "max", s.Max, "total", s.Total, "start", s.filled().Start, "cosine", s.Cosine)
}
