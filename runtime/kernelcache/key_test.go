package kernelcache

// Tests of keys: two different lists of fields never have the same key.

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/concord-compute/concord/runtime/driver"
)

// ingredients returns a complete list of fields, like the one that package runtime makes.
func ingredients() []Field {
	return []Field{
		F("backend", "cuda"),
		F("identity", "sm_90", "driver 550.54", "nvrtc 12.4"),
		F("options", "-O3", "-g"),
		F("defines", "T=float", "TILE=16"),
		F("includes", "common.h", "#define X 1\n"),
		F("entry", "saxpy"),
		F("source", "kernel void saxpy() {}"),
	}
}

func TestKeyOfEveryIngredientCounts(t *testing.T) {
	base := KeyOf(ingredients()...)
	assert.Equal(t, base, KeyOf(ingredients()...), "the same ingredients are the same key")
	seen := map[Key]string{base: "base"}
	check := func(what string, fields []Field) {
		k := KeyOf(fields...)
		assert.NotContains(t, seen, k, "%s has the key of %s", what, seen[k])
		seen[k] = what
	}
	for i, f := range ingredients() {
		for j, v := range f.Values {
			changed := ingredients()
			changed[i].Values[j] = v + " "
			check(f.Name+" value "+v, changed)
			changed = ingredients()
			changed[i].Values = slices.Delete(changed[i].Values, j, j+1)
			check(f.Name+" without "+v, changed)
		}
		changed := ingredients()
		changed[i].Name += "s"
		check(f.Name+" renamed", changed)
		check(f.Name+" missing", slices.Delete(ingredients(), i, i+1))
		if len(f.Values) > 1 {
			changed = ingredients()
			slices.Reverse(changed[i].Values)
			check(f.Name+" reversed", changed)
			changed = ingredients()
			changed[i].Values = []string{strings.Join(f.Values, "")}
			check(f.Name+" joined", changed)
		}
	}
}

// As a property: moving a byte between neighbours, or a value between fields, changes the key
// although the concatenation stays the same.
func TestKeyOfIsInjectiveAcrossBoundaries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.String(), 2, 6).Draw(t, "values")
		i := rapid.IntRange(0, len(values)-2).Draw(t, "i")
		moved := slices.Clone(values)
		if values[i] != "" {
			last := len(values[i]) - 1
			moved[i], moved[i+1] = values[i][:last], values[i][last:]+values[i+1]
			assert.NotEqual(t, KeyOf(F("v", values...)), KeyOf(F("v", moved...)), "a byte moved to the next value")
			a, b := []Field{}, []Field{}
			for n := range values {
				a, b = append(a, F("f", values[n])), append(b, F("f", moved[n]))
			}
			assert.NotEqual(t, KeyOf(a...), KeyOf(b...), "a byte moved to the next field")
		}
		for cut := range len(values) {
			for other := range cut {
				assert.NotEqual(t, KeyOf(F("o", values[:cut]...), F("d", values[cut:]...)),
					KeyOf(F("o", values[:other]...), F("d", values[other:]...)), "a value moved to the next field")
			}
		}
	})
}

func TestKeyOfNameIsNotAValue(t *testing.T) {
	assert.NotEqual(t, KeyOf(F("ab")), KeyOf(F("a", "b")))
	assert.NotEqual(t, KeyOf(F("a", "")), KeyOf(F("a")))
	assert.NotEqual(t, KeyOf(F("a"), F("b")), KeyOf(F("a", "b")))
	assert.NotEqual(t, KeyOf(), KeyOf(F("")))
}

// Entries on disk outlive the program, so that the hash must not change by accident.
func TestKeyOfIsStable(t *testing.T) {
	assert.Equal(t, "aef9ac236d003d48555210b01e3cea48b49026c0b14b618b03444bf0cbac2e5b", KeyOf(ingredients()...).String())
}

func TestParseKey(t *testing.T) {
	k := KeyOf(F("x", "y"))
	back, err := ParseKey(k.String())
	require.NoError(t, err)
	assert.Equal(t, k, back)
	for _, bad := range []string{"", "ab", k.String()[:63], k.String() + "0", strings.ToUpper(k.String()),
		"zz" + k.String()[2:], "../" + k.String()[3:], strings.Repeat("a", 1000)} {
		_, err := ParseKey(bad)
		assert.ErrorIs(t, err, driver.ErrInvalidArgument, bad)
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add(KeyOf().String())
	f.Add("..")
	f.Fuzz(func(t *testing.T, s string) {
		if k, err := ParseKey(s); err == nil {
			assert.Equal(t, s, k.String())
		}
	})
}
