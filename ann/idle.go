package ann

import "sync"

// idle keeps what calls that are over have left for the next ones. The zero value is empty. It is safe for
// concurrent use.
type idle[T any] struct {
	mu   sync.Mutex
	list []T
}

// take returns one of them; false if there is none.
func (p *idle[T]) take() (x T, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.list); n > 0 {
		x, p.list = p.list[n-1], p.list[:n-1]
		return x, true
	}
	return x, false
}

func (p *idle[T]) give(x T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, x)
}

// each calls f for all. They stay.
func (p *idle[T]) each(f func(x T)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.list {
		f(x)
	}
}

// drain removes all, and calls f for each.
func (p *idle[T]) drain(f func(x T)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.list {
		f(x)
	}
	p.list = nil
}
