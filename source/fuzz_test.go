package source

// FuzzParse: no input makes the front end panic, hang or use too much memory, and every program
// that it accepts can be rendered.

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/source/internal/preprocess"
	"github.com/concord-compute/concord/source/internal/token"
)

func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("../internal/verify/stress/programs/*.cl")
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	for _, c := range refused {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := Parse(text, Options{})
		if err != nil {
			if u != nil || err.Error() == "" {
				t.Fatal("an error without a message, or with a unit")
			}
			return
		}
		for _, target := range []Target{OpenCL, Host, CUDA, HIP} {
			if _, err := u.Render(target); err != nil && !errors.Is(err, ErrUnsupported) {
				t.Fatal(err)
			}
		}
		moved, err := u.RenderOffsets()
		if err != nil {
			t.Fatal(err)
		}
		_ = moved
		for _, k := range u.Kernels() {
			if k.LocalBytes < 0 {
				t.Fatal("negative local memory")
			}
		}
	})
}

// TestMutations damages the stress programs token by token, which gets further
// into the parser than damaged bytes do.
func TestMutations(t *testing.T) {
	files, err := filepath.Glob("../internal/verify/stress/programs/*.cl")
	require.NoError(t, err)
	rounds := 40
	if testing.Short() {
		rounds = 4
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var words []string
	var programs [][]string
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		pp, err := preprocess.Expand(token.NewMeter(t.Context()), string(b), preprocess.Options{Features: Portable})
		require.NoError(t, err)
		var program []string
		for _, tok := range pp.Tokens {
			if tok.Kind != token.EOF && tok.Kind != token.Pragma {
				program = append(program, tok.Text)
			}
		}
		programs = append(programs, program)
		words = append(words, program...)
	}
	accepted := 0
	for _, program := range programs {
		for range rounds {
			text := strings.Join(mutate(rng, program, words), " ")
			u, err := Parse(text, Options{})
			if err != nil {
				continue
			}
			accepted++
			for _, target := range []Target{Host, CUDA, HIP} {
				if _, err = u.Render(target); !errors.Is(err, ErrUnsupported) {
					require.NoError(t, err)
				}
			}
			_, err = u.RenderOffsets()
			require.NoError(t, err)
		}
	}
	t.Logf("%d of %d accepted", accepted, rounds*len(programs))
}

// mutate deletes, doubles, exchanges and replaces a few tokens.
func mutate(rng *rand.Rand, program, words []string) []string {
	out := slices.Clone(program)
	for range 1 + rng.IntN(4) {
		i, j := rng.IntN(len(out)), rng.IntN(len(out))
		switch rng.IntN(4) {
		case 0:
			out = slices.Delete(out, i, i+1)
		case 1:
			out = slices.Insert(out, i, out[j])
		case 2:
			out[i], out[j] = out[j], out[i]
		case 3:
			out[i] = words[rng.IntN(len(words))]
		}
	}
	return out
}
