package mempool

// Limits in the model: hard limits, limits on kept memory, reports of pressure.

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/concord-compute/concord/runtime/driver"
)

// within checks the hard limit. It is called at each allocation of the driver, with the driver's
// lock held.
func (m *model) within(n int64) error {
	if m.o.HardLimit > 0 && m.src.held+n > m.o.HardLimit || m.o.HardCount > 0 && len(m.src.open) >= m.o.HardCount {
		m.src.wrong = errors.Join(m.src.wrong, fmt.Errorf("%d bytes beyond a hard limit", n))
	}
	return nil
}

// refused accepts an error that the pool may return if it keeps no memory.
func (m *model) refused(err error) error {
	if errors.Is(err, driver.ErrBudget) || errors.Is(err, driver.ErrOutOfMemory) {
		return m.keepsNothing()
	}
	return err
}

// keepsNothing checks that there are no unused allocations.
func (m *model) keepsNothing() error {
	m.p.mu.Lock()
	defer m.p.mu.Unlock()
	if m.p.empty.first != nil || m.p.warm.end > 0 {
		return errors.New("something is kept")
	}
	return nil
}

// keepsLittle does so above a limit, in a pool that has checked the progress of work.
func (m *model) keepsLittle() error {
	if m.src.held > m.o.SoftLimit || m.o.HardLimit > 0 && m.src.held > m.o.HardLimit ||
		m.o.SoftCount > 0 && len(m.src.open) > m.o.SoftCount {
		return m.keepsNothing()
	}
	return nil
}

func (m *model) setLimits(soft, hard int64) error {
	switch err := m.p.SetLimits(soft, hard); {
	case (soft < 0 || hard < 0) != errors.Is(err, driver.ErrInvalidArgument):
		return fmt.Errorf("limits of %d and %d: %w", soft, hard, err)
	case err != nil:
		return nil
	}
	m.o.SoftLimit, m.o.HardLimit = cmp.Or(soft, 1<<30), hard
	return m.keepsLittle() // at once
}

// reserve takes memory from the driver in another way, as package runtime does.
func (m *model) reserve(n int64) error {
	m.reserving = n
	id, err := m.p.Reserve(n)
	m.reserving = 0
	if err != nil {
		return m.refused(err)
	}
	_ = m.within(n)
	mem := m.src.give(n, driver.OnDevice)
	m.live = append(m.live, span{id: id, handle: mem.Handle, size: n, asked: n, reserved: true})
	m.gets++
	return nil
}

func (m *model) release(s span) error {
	m.gone = append(m.gone, s.id)
	m.puts++
	return errors.Join(m.src.Free(driver.Memory{Handle: s.handle, Size: s.size}), m.p.Release(s.id))
}

// preallocate fills the pool and then uses the blocks.
func (m *model) preallocate(specs []Spec) error {
	before := m.p.Counters()
	err := m.p.Preallocate(specs)
	after := m.p.Counters()
	gets := after.Allocations - before.Allocations
	m.gets += gets
	m.puts += gets
	m.peak = max(m.peak, after.PeakLive)
	switch {
	case after.Live != before.Live:
		return fmt.Errorf("%d bytes live after Preallocate, %d before", after.Live, before.Live)
	case err != nil && after.Reserved > before.Reserved:
		return fmt.Errorf("%d bytes more after %w", after.Reserved-before.Reserved, err)
	case errors.Is(err, driver.ErrBudget), errors.Is(err, driver.ErrOutOfMemory):
		return nil
	case err != nil:
		return err
	case m.o.Mode == PassThrough:
		return nil
	}
	for _, s := range specs {
		for range s.Count {
			if err := m.get(s.Bytes, driver.OnDevice, nil); err != nil || m.emergency { // then the rest is gone
				return err
			}
		}
	}
	if m.src.allocs != after.DriverAllocs {
		return fmt.Errorf("the driver was asked for what Preallocate of %v had ready", specs)
	}
	return nil
}

func (m *model) trim(keep int64) {
	m.cleanups++
	m.p.Trim(keep)
}

func (m *model) watch(t Thresholds) {
	m.src.wrong = errors.Join(m.src.wrong, m.p.Watch(t, m.tell))
	m.o.Thresholds = t
	m.o.Thresholds.defaults()
}

func (m *model) parts() [4]float64 {
	t := &m.o.Thresholds
	return [...]float64{t.Warn, t.High, t.Coalesce, t.Critical}
}

// tell is called once for each threshold that is crossed, upwards and downwards, in order.
func (m *model) tell(e Pressure) {
	if e.Up { // a reservation counts before the countermeasure frees memory, and before the source has it
		m.src.most = max(m.src.most, m.src.held+m.reserving)
	}
	switch {
	case e.Up && int(e.Threshold) == m.level && e.Used > 0:
		m.level++
	case !e.Up && int(e.Threshold) == m.level-1:
		m.level--
	default:
		m.src.wrong = errors.Join(m.src.wrong, fmt.Errorf("told of %v at %d", e, m.level))
	}
	m.emergency = m.o.AutoEmergency && e.Up && e.Threshold == Critical
	if m.emergency {
		m.cleanups++
	}
	m.p.Holders()
}

// pressure compares the reports with the live memory.
func (m *model) pressure(live int64) error {
	level := 0
	for _, part := range m.parts() {
		if float64(live)/float64(m.o.SoftLimit) > part {
			level++
		}
	}
	if level != m.level {
		return fmt.Errorf("%d bytes of %d are above %d thresholds, told of %d", live, m.o.SoftLimit, level, m.level)
	}
	if !m.emergency {
		return nil
	}
	m.emergency = false
	return m.keepsNothing()
}

// closed closes the pool. Live blocks stay, and no more are returned.
func (m *model) closed() error {
	if err := m.p.Close(); errors.Is(err, ErrLeak) != (len(m.live) > 0) {
		return fmt.Errorf("closed with %d blocks live: %w", len(m.live), err)
	}
	_, err := m.p.Reserve(1)
	for _, err := range []error{err, m.get(1, driver.OnDevice, nil), m.p.SetLimits(0, 0), m.p.Preallocate(nil)} {
		if !errors.Is(err, driver.ErrClosed) {
			return fmt.Errorf("after Close: %w", err)
		}
	}
	return m.keepsNothing()
}
