package file

import "fmt"

// Parse maps a file with [Map] and parses what it has. The result may have parts of the mapping, which the
// caller owns and must close. The errors of parse get the path in front.
func Parse[T any](path string, parse func(data []byte) (T, error)) (T, *Mapping, error) {
	var none T
	m, err := Map(path)
	if err != nil {
		return none, nil, err
	}
	x, err := parse(m.Data)
	if err != nil {
		m.Close()
		return none, nil, fmt.Errorf("%s: %w", path, err)
	}
	return x, m, nil
}
