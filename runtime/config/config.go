package config

// Reading, merging and checking.

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/concord-compute/concord/runtime/driver"
)

// ParseEnv reads a configuration from an environment in the form of os.Environ.
// A malformed value is an error that names the variable.
func ParseEnv(environ []string) (driver.Config, error) {
	var c driver.Config
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "CONCORD_") {
			continue
		}
		i := slices.IndexFunc(variables, func(v Variable) bool { return v.Name == name })
		if i < 0 {
			continue
		}
		if value == "" && name != "CONCORD_FAKE_DEVICES" {
			continue // empty counts as unset, as in most programs; an empty list of fakes means "no GPU"
		}
		if err := variables[i].set(&c, value); err != nil {
			return driver.Config{}, fmt.Errorf("%s=%s: %w: %w", name, value, err, driver.ErrInvalidArgument)
		}
	}
	if unknown := Unknown(environ); c.Strict && len(unknown) > 0 {
		for i, name := range unknown {
			if meant := Nearest(name); meant != "" {
				unknown[i] += " (" + meant + "?)"
			}
		}
		return driver.Config{}, fmt.Errorf("%s: not a variable that Concord knows, refused by CONCORD_STRICT=1: %w",
			strings.Join(unknown, ", "), driver.ErrInvalidArgument)
	}
	if c.Strict {
		c.Fallback = driver.Require
	}
	return c, nil
}

// Unknown returns the names in an environment that begin as Concord's do and are none of them, in its order.
func Unknown(environ []string) (names []string) {
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "CONCORD_") && !slices.ContainsFunc(variables, func(v Variable) bool {
			return v.Name == name
		}) {
			names = append(names, name)
		}
	}
	return names
}

// Nearest returns the variable of Concord that a misspelt name means: the one from which it differs in the fewest
// letters. If those are more than a third of the name without its prefix, it is likely to be a name of another
// program, and the result is "".
func Nearest(name string) (meant string) {
	var names []string
	for _, v := range variables {
		names = append(names, v.Name)
	}
	return nearest(name, names, len(strings.TrimPrefix(name, "CONCORD_")))
}

// NearestOf returns the one of several names that a misspelt name means: the first one from which it differs in the
// fewest letters. If those are more than a third of the name the result is "".
func NearestOf(name string, among []string) (meant string) { return nearest(name, among, len(name)) }

func nearest(name string, among []string, letters int) (meant string) {
	least := (letters+1)/3 + 1
	for _, n := range among {
		if d := distance(name, n); d < least {
			meant, least = n, d
		}
	}
	return meant
}

// distance returns how many letters have to be put in, taken out or replaced to make one name of another.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // the distances of the beginning of a from each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := corner
			if a[i] != b[j] {
				replaced++
			}
			corner = row[j+1]
			row[j+1] = min(replaced, corner+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// Merge returns c with every unset field (one with its zero value) taken from env. CONCORD_STRICT=1
// of the environment stays in force.
func Merge(c, env driver.Config) driver.Config {
	to, from := reflect.ValueOf(&c).Elem(), reflect.ValueOf(env)
	for i := range to.NumField() {
		if to.Field(i).IsZero() {
			to.Field(i).Set(from.Field(i))
		}
	}
	if c.Strict {
		c.Fallback = driver.Require
	}
	return c
}

// Check returns an error that matches driver.ErrInvalidArgument and names the field if a value is
// not valid.
func Check(c *driver.Config) error {
	if err := checkFallback(c.Fallback); err != nil {
		return fmt.Errorf("fallback policy: %w: %w", err, driver.ErrInvalidArgument)
	}
	if err := checkFilling(c.MemoryFill); err != nil {
		return fmt.Errorf("Config.MemoryFill: %w: %w", err, driver.ErrInvalidArgument)
	}
	switch c.MemoryMode {
	case driver.PoolByDevice, driver.PoolSplit, driver.PoolWhole, driver.PoolExact:
	default:
		return fmt.Errorf("Config.MemoryMode: %q is not split, whole or exact: %w", string(c.MemoryMode),
			driver.ErrInvalidArgument)
	}
	for name, n := range map[string]int64{"MemoryLimit": c.MemoryLimit,
		"MemorySoftCount": int64(c.MemorySoftCount), "MemoryHardCount": int64(c.MemoryHardCount), "CacheSize": c.CacheSize,
		"ProbeTimeout": int64(c.ProbeTimeout), "CPUThreads": int64(c.CPUThreads)} {
		if n < 0 {
			return fmt.Errorf("negative Config.%s: %w", name, driver.ErrInvalidArgument)
		}
	}
	return nil
}

// Requires reports whether tests have to fail where a backend is absent. It returns an error that
// matches driver.ErrUnknownBackend if Required has a name that is neither Concord's nor that of a
// backend of this program, since the name may be misspelt.
func Requires(c driver.Config, backend string) (bool, error) {
	backends := c.Backends
	if backends == nil {
		backends = driver.Backends()
	}
	known := slices.Concat(driver.BackendNames(), driver.SimulatedNames())
	for _, b := range backends {
		if !slices.Contains(known, b.Name()) {
			known = append(known, b.Name())
		}
	}
	for _, name := range c.Required {
		if !slices.Contains(known, name) {
			return false, fmt.Errorf("CONCORD_REQUIRE=%s: %w; there are %s", name, driver.ErrUnknownBackend,
				strings.Join(known, ", "))
		}
	}
	return slices.Contains(c.Required, backend), nil
}

func checkFallback(f driver.Fallback) error {
	switch f {
	case "", driver.Prefer, driver.Require:
		return nil
	}
	return fmt.Errorf("%q is not require or prefer", string(f))
}

func checkFilling(f driver.Filling) error {
	switch f {
	case driver.FillNothing, driver.FillZero, driver.FillPattern:
		return nil
	}
	return fmt.Errorf("%q is not zero or pattern", string(f))
}

// ParseSize reads a number of bytes with an optional suffix K, M or G (powers of
// 1024).
func ParseSize(s string) (int64, error) {
	digits, scale := s, int64(1)
	if s != "" {
		switch s[len(s)-1] {
		case 'k', 'K':
			scale = 1 << 10
		case 'm', 'M':
			scale = 1 << 20
		case 'g', 'G':
			scale = 1 << 30
		}
		if scale > 1 {
			digits = s[:len(s)-1]
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/scale {
		return 0, fmt.Errorf("%q is not a positive size such as 4096, 512M or 2G", s)
	}
	return n * scale, nil
}

func parseBool(s string) (bool, error) {
	switch s {
	case "0":
		return false, nil
	case "1":
		return true, nil
	}
	return false, fmt.Errorf("%q is not 0 or 1", s)
}

// parseOff reads a switch into the field that says that it is off.
func parseOff(s string) (bool, error) {
	on, err := parseBool(s)
	return !on, err
}

// between returns the function that reads a number of this range.
func between(low, high int) func(s string) (int, error) {
	return func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < low || n > high {
			return 0, fmt.Errorf("%q is not a number from %d to %d", s, low, high)
		}
		return n, nil
	}
}

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err == nil && d <= 0 {
		err = fmt.Errorf("%q is not positive", s)
	}
	return d, err
}
