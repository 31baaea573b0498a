package tune

// Notes of what was tuned at first use.

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime/choice"
)

// tried are the points of subjects that were tuned at first use, whether or not something was found.
type tried []attempt

type attempt struct {
	Subject string   `json:"subject"`
	Points  []string `json:"points"`
	Version string   `json:"version"` // of its choices
}

// readTried reads notes. Those that are missing or damaged are none.
func readTried(dir, name string) (list tried) {
	text, err := file.Kept(dir, name)
	if err != nil || json.Unmarshal(text, &list) != nil {
		return nil
	}
	return list
}

func (list tried) write(dir, name string) error {
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return file.Keep(dir, name, text)
}

// version names what the choices of the subject mean on a device.
func (s *Subject) version(choices []*choice.Choice) string {
	var list []string
	for _, c := range s.choices(choices) {
		list = append(list, choice.VersionOf(c.Operation(), choices))
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), " ")
}

func (list tried) points(s *Subject) []string {
	for _, t := range list {
		if t.Subject == s.Name {
			return t.Points
		}
	}
	return nil
}

func (list tried) has(s *Subject, point string, choices []*choice.Choice) bool {
	return slices.ContainsFunc(list, func(t attempt) bool {
		return t.Subject == s.Name && t.Version == s.version(choices) && slices.Contains(t.Points, point)
	})
}

// with returns the list with one more point of a subject, without those of other versions of its choices.
func (list tried) with(s *Subject, point string, choices []*choice.Choice) tried {
	more := attempt{Subject: s.Name, Version: s.version(choices), Points: []string{point}}
	var next tried
	for _, t := range list {
		switch {
		case t.Subject != s.Name:
			next = append(next, t)
		case t.Version == more.Version:
			more.Points = append(slices.Clone(t.Points), point)
		}
	}
	return append(next, more)
}
