package tune

// Rates that operations have to keep.

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/concord-compute/concord/runtime"
)

// Baseline is the rate that an operation had on a device.
type Baseline struct {
	Operation string `json:"operation"`
	// per second, of whatever the operation counts: elements, bytes
	TargetThroughput float64   `json:"target_throughput"`
	Device           string    `json:"device"` // its name: Info.Name
	Date             time.Time `json:"date"`

	// Rates were measured one by one, and tell by how much the rate differs from itself; nil where that is not known.
	// The rate is their median.
	Rates []float64 `json:"rates,omitempty"`
}

// CheckRegression reports whether a rate is less than nine tenths of the baseline's. The error is ErrInvalidArgument
// if the rate was measured on another device, if the baseline's is not above 0, or if one of them is not a number.
func (b Baseline) CheckRegression(device string, throughput float64) (regressed bool, err error) {
	switch {
	case device != b.Device:
		err = fmt.Errorf("%s on %s beside a baseline of %s: %w", b.Operation, device, b.Device, runtime.ErrInvalidArgument)
	case !(b.TargetThroughput > 0) || math.IsInf(b.TargetThroughput, 0):
		err = fmt.Errorf("%s: a baseline of %v per second: %w", b.Operation, b.TargetThroughput, runtime.ErrInvalidArgument)
	case !(throughput >= 0) || math.IsInf(throughput, 0):
		err = fmt.Errorf("%s: %v per second: %w", b.Operation, throughput, runtime.ErrInvalidArgument)
	}
	return err == nil && throughput < 0.9*b.TargetThroughput, err
}

// String describes the baseline: "vector_add on NVIDIA H100: 1e+09 per second, 2026-01-31".
func (b Baseline) String() string {
	return fmt.Sprintf("%s on %s: %.4g per second, %s", b.Operation, b.Device, b.TargetThroughput,
		b.Date.Format(time.DateOnly))
}

// WriteBaselines writes baselines as JSON, which [ReadBaselines] reads.
func WriteBaselines(w io.Writer, list []Baseline) error {
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return fmt.Errorf("baselines: %w", err)
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// mostBaselines is the size of a file of baselines above which none is read.
const mostBaselines = 16 << 20

// ReadBaselines reads what [WriteBaselines] wrote. The error is runtime.ErrFormat if the text is something else, or
// longer than 16 MiB.
func ReadBaselines(r io.Reader) ([]Baseline, error) {
	text, err := io.ReadAll(io.LimitReader(r, mostBaselines+1))
	if err != nil {
		return nil, fmt.Errorf("baselines: %w", err)
	}
	if len(text) > mostBaselines {
		return nil, fmt.Errorf("baselines: more than %d bytes: %w", mostBaselines, runtime.ErrFormat)
	}
	var list []Baseline
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("baselines: %w: %w", runtime.ErrFormat, err)
	}
	for i, b := range list {
		if b.Operation == "" || b.Device == "" || b.Date.IsZero() || !(b.TargetThroughput > 0) {
			return nil, fmt.Errorf("baselines: number %d has no operation, device, date or rate above 0: %w", i,
				runtime.ErrFormat)
		}
		if slices.ContainsFunc(b.Rates, func(r float64) bool { return !(r > 0) }) {
			return nil, fmt.Errorf("baselines: number %d has a rate that is not above 0: %w", i, runtime.ErrFormat)
		}
	}
	return list, nil
}
