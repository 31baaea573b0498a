//go:build !watchedchoices

package choice

// Of returns the value of a choice.
func (s *Set) Of(c *Choice) int {
	if s == nil || c.at == 0 || c.at > len(s.values) {
		return c.Default
	}
	return s.values[c.at-1]
}
