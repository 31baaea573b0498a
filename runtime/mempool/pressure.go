package mempool

// Pressure: how close a pool is to its soft limit, the reports, and the countermeasures.

import (
	"fmt"
	"math"

	"github.com/concord-compute/concord/runtime/driver"
)

// Thresholds say when memory counts as short, as parts of the soft limit, except for Device; 0
// means the default. A threshold is crossed when the value is above it, not when it is equal.
type Thresholds struct {
	Warn     float64 // of Live; 0.70
	High     float64 // 0.80
	Coalesce float64 // Coalesce is called; 0.85
	Critical float64 // Trim(0) is advised; 0.90
	Device   float64 // of the device's memory in use by all programs; 0.90

	// Water marks of Reserved, for a request that no free block fits: from HighWater on free blocks
	// are joined, and if Reserved is still at LowWater or above, all kept memory is freed.
	HighWater float64 // 0.85
	LowWater  float64 // 0.70
}

// Threshold names one of Thresholds.
type Threshold int

// The thresholds that are reported.
const (
	Warn Threshold = iota
	High
	Coalesce
	Critical
	DeviceFull
)

// String returns the threshold as a word.
func (t Threshold) String() string {
	if names := [...]string{"warn", "high", "coalesce", "critical", "device"}; t >= 0 && int(t) < len(names) {
		return names[t]
	}
	return fmt.Sprintf("Threshold(%d)", int(t))
}

// Pressure reports a threshold that was crossed, on the way up or down.
type Pressure struct {
	Threshold Threshold
	Up        bool
	Used      int64 // bytes: Live, or the memory in use on the device
	Of        int64 // bytes: the soft limit, or the device's memory
}

// String returns a line such as "critical: 9.1 GiB of 10.0 GiB".
func (e Pressure) String() string {
	past := ""
	if !e.Up {
		past = " no more"
	}
	return fmt.Sprintf("%s%s: %s of %s", e.Threshold, past, driver.FormatBytes(e.Used), driver.FormatBytes(e.Of))
}

func (t *Thresholds) defaults() {
	for _, x := range []struct {
		field *float64
		value float64
	}{{&t.Warn, 0.70}, {&t.High, 0.80}, {&t.Coalesce, 0.85}, {&t.Critical, 0.90}, {&t.Device, 0.90}, {&t.HighWater, 0.85},
		{&t.LowWater, 0.70}} {
		if *x.field == 0 {
			*x.field = x.value
		}
	}
}

// check refuses values that are not parts, and thresholds that are not in order.
func (t *Thresholds) check() error {
	for _, x := range []float64{t.Warn, t.High, t.Coalesce, t.Critical, t.Device, t.HighWater, t.LowWater} {
		if !(x > 0) || math.IsInf(x, 1) {
			return fmt.Errorf("threshold %v: %w", x, driver.ErrInvalidArgument)
		}
	}
	if t.Warn > t.High || t.High > t.Coalesce || t.Coalesce > t.Critical || t.LowWater > t.HighWater {
		return fmt.Errorf("thresholds %+v are not in order: %w", *t, driver.ErrInvalidArgument)
	}
	return nil
}

// Watch sets the thresholds and the function that is called when one is crossed, once on the way up and once on the
// way down. Calls come in order, one at a time, without the pool's lock. It is called during the Get or Put that
// crossed the threshold, or during a concurrent one, which waits for it. It may call the pool. Nil ends the reports.
func (p *Pool) Watch(t Thresholds, tell func(Pressure)) error {
	t.defaults()
	if err := t.check(); err != nil {
		return err
	}
	p.mu.Lock()
	p.o.Thresholds, p.tell = t, tell
	p.setLines()
	p.leave()
	return nil
}

// setLines computes each threshold in bytes of Live.
func (p *Pool) setLines() {
	t := &p.o.Thresholds
	for i, part := range [...]float64{t.Warn, t.High, t.Coalesce, t.Critical} {
		p.lines[i] = line(p.o.SoftLimit, part)
	}
	p.cross()
}

// never is a number of bytes that Live never reaches.
const never = math.MaxInt64 >> 1

// line returns the largest number of bytes for which bytes/limit is not above part, in the
// arithmetic of Stats.Pressure.
func line(limit int64, part float64) int64 {
	of := float64(limit)
	if part*of >= never {
		return never
	}
	line := int64(part * of) // off by a rounding error at most
	for float64(line+1)/of <= part {
		line++
	}
	for line > 0 && float64(line)/of > part {
		line--
	}
	return line
}

// cross notes the thresholds that Live has crossed since the last call, and the range in which it
// is now.
func (p *Pool) cross() {
	for p.level < len(p.lines) && p.n.Live > p.lines[p.level] {
		p.passed = append(p.passed, Pressure{Threshold(p.level), true, p.n.Live, p.o.SoftLimit})
		p.level++
	}
	for p.level > 0 && p.n.Live <= p.lines[p.level-1] {
		p.level--
		p.passed = append(p.passed, Pressure{Threshold(p.level), false, p.n.Live, p.o.SoftLimit})
	}
	p.below, p.above = -1, math.MaxInt64
	if p.level > 0 {
		p.below = p.lines[p.level-1]
	}
	if p.level < len(p.lines) {
		p.above = p.lines[p.level]
	}
}

// leave is unlock for calls that hold no other lock: it also reports thresholds.
func (p *Pool) leave() {
	if len(p.dead) == 0 && len(p.passed) == 0 {
		p.mu.Unlock()
		return
	}
	p.unlock()
	p.tellAll()
}

// tellAll reports the crossed thresholds. If another call is already doing that, the reports are
// left to it, so that they stay in order and a callback that calls the pool does not wait for
// itself. They are also postponed while a Get reclaims memory.
func (p *Pool) tellAll() {
	p.mu.Lock()
	if p.telling || p.reclaiming > 0 {
		p.mu.Unlock()
		return
	}
	p.telling = true
	defer func() { // also if the callback panics
		p.telling = false
		p.mu.Unlock()
	}()
	for len(p.passed) > 0 {
		e := p.passed[0]
		p.passed = p.passed[1:]
		p.act(e, p.tell)
	}
	p.passed = nil
}

// act releases the lock, reports a threshold and takes its countermeasure.
func (p *Pool) act(e Pressure, tell func(Pressure)) {
	p.mu.Unlock()
	defer p.mu.Lock()
	if tell != nil {
		tell(e)
	}
	switch {
	case e.Up && e.Threshold == Coalesce:
		p.Coalesce()
	case e.Up && e.Threshold == Critical && p.o.AutoEmergency:
		p.Trim(0)
	}
}

// lookAtDevice notes when the device's memory becomes nearly full, whichever program uses it.
func (p *Pool) lookAtDevice() {
	if p.o.Device == nil {
		return
	}
	used, total, known := p.o.Device()
	if !known || total <= 0 {
		return
	}
	p.mu.Lock()
	if full := float64(used)/float64(total) > p.o.Thresholds.Device; full != p.full {
		p.full = full
		p.passed = append(p.passed, Pressure{DeviceFull, full, used, total})
	}
	p.mu.Unlock()
}
