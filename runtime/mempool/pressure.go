package mempool

// Pressure: how near to its soft limit a pool is, who is told, and what is done.

import (
	"fmt"
	"math"

	"github.com/concord-compute/concord/runtime/driver"
)

// Thresholds say when memory runs short. They are parts of the soft limit, but for
// Device; 0 means the default. A threshold is passed by more than it, not by as much.
type Thresholds struct {
	Warn     float64 // of Live; 0.70
	High     float64 // 0.80
	Coalesce float64 // free blocks that work has left are looked for at once; 0.85
	Critical float64 // Trim(0) is advised; 0.90
	Device   float64 // of the device's memory, whoever uses it; 0.90

	// Water marks of Reserved, for a request that no free block fits: from HighWater on
	// free blocks are joined, and if Reserved is at LowWater still, all that is kept goes.
	HighWater float64 // 0.85
	LowWater  float64 // 0.70
}

// Threshold names one of Thresholds.
type Threshold int

// The thresholds that are told of.
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

// Pressure is a threshold that was passed, on the way up or down.
type Pressure struct {
	Threshold Threshold
	Up        bool
	Used      int64 // bytes: Live, or what is in use on the device
	Of        int64 // bytes: the soft limit, or the device's memory
}

// String reads "critical: 9.1 GiB of 10.0 GiB".
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
	}{{&t.Warn, 0.70}, {&t.High, 0.80}, {&t.Coalesce, 0.85}, {&t.Critical, 0.90}, {&t.Device, 0.90}, {&t.HighWater, 0.85}, {&t.LowWater, 0.70}} {
		if *x.field == 0 {
			*x.field = x.value
		}
	}
}

// check refuses what is no part, and thresholds that are not in order.
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

// Watch sets thresholds and who is told when one is passed: each once on the way up and
// once on the way down, in order, one after another, without the pool's lock. It is
// called in the middle of the Get or Put that passed the threshold, or by one at the
// same time, which it keeps waiting. It may call the pool. Nil tells nobody.
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

// setLines computes from how many live bytes on each threshold is passed.
func (p *Pool) setLines() {
	t := &p.o.Thresholds
	for i, part := range [...]float64{t.Warn, t.High, t.Coalesce, t.Critical} {
		p.lines[i] = line(p.o.SoftLimit, part)
	}
	p.cross()
}

// never is more than ever is live.
const never = math.MaxInt64 >> 1

// line is the most bytes of which bytes/limit is not above part, in the arithmetic of
// Stats.Pressure.
func line(limit int64, part float64) int64 {
	of := float64(limit)
	if part*of >= never {
		return never
	}
	line := int64(part * of) // a rounding away, at most
	for float64(line+1)/of <= part {
		line++
	}
	for line > 0 && float64(line)/of > part {
		line--
	}
	return line
}

// cross notes the thresholds that Live has passed since it was last looked at, and
// between which two it is now.
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

// leave is unlock for who holds no other lock: it also tells of thresholds.
func (p *Pool) leave() {
	if len(p.dead) == 0 && len(p.passed) == 0 {
		p.mu.Unlock()
		return
	}
	p.unlock()
	p.tellAll()
}

// tellAll acts on the thresholds that were passed. Who finds somebody at it leaves them
// to that one, so that they are told in order and a call back from there does not wait
// for itself; so does who gives back memory for a Get that cannot go on without.
func (p *Pool) tellAll() {
	p.mu.Lock()
	if p.telling || p.reclaiming > 0 {
		p.mu.Unlock()
		return
	}
	p.telling = true
	defer func() { // when who is told panics, too
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

// act gives the lock back while it tells, and does what a threshold calls for.
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

// lookAtDevice notes when the device is nearly full, by whoever uses it.
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
