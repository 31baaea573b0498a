package tune

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/concord-compute/concord/internal/file"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/choice"
)

// kept opens the planted device in a session whose cache, and so its tables, are in dir.
func kept(t *testing.T, dir, setting string) *runtime.Device {
	t.Helper()
	cfg := plantedConfig()
	cfg.CacheDir, cfg.Tune = dir, setting
	s, err := runtime.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	d, err := s.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	return d
}

func chosen(d *runtime.Device, c *choice.Choice) int {
	return d.Driver().(*plantedDevice).set.Load().Of(c)
}

func tableFor(d *runtime.Device, values map[string]int) *choice.Table {
	table := d.Choices().New(values)
	table.For, table.Driver = "planted", ""
	return table
}

func TestKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	d := kept(t, dir, "")
	assert.Nil(t, d.Choices().Table())
	table := tableFor(d, map[string]int{"planted.way": fastWay})
	require.NoError(t, d.KeepTuned(t.Context(), table))
	assert.Equal(t, fastWay, chosen(d, way), "at once")

	again := kept(t, dir, "")
	assert.Equal(t, table, again.Choices().Table(), "in the next session")
	assert.Equal(t, fastWay, chosen(again, way))
	assert.Equal(t, 16, chosen(again, pause), "the others have the defaults")
	off := kept(t, dir, "off")
	assert.Nil(t, off.Choices().Table())
	assert.Equal(t, usualWay, chosen(off, way))
	assert.Nil(t, kept(t, "off", "").Choices().Table(), "nothing is kept without a cache")

	files, err := filepath.Glob(filepath.Join(dir, "tuned", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	for at := 0; at < len(text); at += 13 { // damaged anywhere
		bad := append([]byte{}, text...)
		bad[at] ^= 4
		require.NoError(t, os.WriteFile(files[0], bad, 0o600))
		require.Nil(t, kept(t, dir, "").Choices().Table(), "%d", at)
	}
	require.NoError(t, d.KeepTuned(t.Context(), nil))
	assert.Nil(t, d.Choices().Table())
	assert.Equal(t, usualWay, chosen(d, way))
	assert.NoFileExists(t, files[0])
	require.NoError(t, d.KeepTuned(t.Context(), nil), "twice")
}

// A table that is for something else has no effect, and one that cannot be kept changes nothing.
func TestKeptForAnother(t *testing.T) {
	dir := t.TempDir()
	d := kept(t, filepath.Join(dir, "cache"), "")
	good := tableFor(d, map[string]int{"planted.pause": 8})
	require.NoError(t, d.KeepTuned(t.Context(), good))
	for why, change := range map[string]func(table *choice.Table){
		`made for "plant", and this is "planted, 1 thread"`: func(t *choice.Table) { t.For = "plant" },
		`made with driver "1"`:                              func(t *choice.Table) { t.Driver = "1" },
		"made with version 0 of the choices": func(t *choice.Table) {
			t.Versions = map[string]string{"planted": "0"}
		},
		`no choice is named "planted.x"`: func(t *choice.Table) {
			t.Values = map[string]int{"planted.x": 1}
		},
		"planted.way is 8, and not 0 to 7": func(t *choice.Table) {
			t.Values = map[string]int{"planted.way": 8}
		},
	} {
		table := *good
		change(&table)
		err := d.KeepTuned(t.Context(), &table)
		require.ErrorIs(t, err, runtime.ErrInvalidArgument)
		require.ErrorContains(t, err, why)
		assert.Equal(t, good, d.Choices().Table())
		assert.Equal(t, 8, chosen(d, pause))

		pinned := filepath.Join(dir, "pinned.json")
		f, err := os.Create(pinned)
		require.NoError(t, err)
		require.NoError(t, table.Write(f))
		require.NoError(t, f.Close())
		cfg := plantedConfig()
		cfg.CacheDir, cfg.Tune = filepath.Join(dir, "cache"), pinned
		s, err := runtime.New(cfg)
		require.NoError(t, err)
		other, err := s.Open(t.Context(), "cpu:0")
		if d.Choices().Fits(&table) == nil { // the values are wrong
			require.ErrorIs(t, err, runtime.ErrInvalidArgument)
			require.ErrorContains(t, err, why)
		} else {
			require.NoError(t, err)
			assert.Nil(t, other.Choices().Table())
			assert.Equal(t, 16, chosen(other, pause), "the defaults, and not what was kept")
		}
		require.NoError(t, s.Close())

		cfg.Strict = true
		s, err = runtime.New(cfg)
		require.NoError(t, err)
		_, err = s.Open(t.Context(), "cpu:0")
		require.ErrorIs(t, err, runtime.ErrInvalidArgument)
		require.ErrorContains(t, err, why)
		require.NoError(t, s.Close())
	}
}

// A pinned table that is for another device says so, once for each device, but not of the reference.
func TestPinnedForAnother(t *testing.T) {
	table := tableFor(kept(t, "off", ""), map[string]int{"planted.pause": 8})
	table.For = "another"
	name := filepath.Join(t.TempDir(), "pinned.json")
	f, err := os.Create(name)
	require.NoError(t, err)
	require.NoError(t, table.Write(f))
	require.NoError(t, f.Close())
	var log bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	for range 2 {
		s, err := runtime.New(runtime.Config{CacheDir: "off", Tune: name, Validate: -1})
		require.NoError(t, err)
		for _, d := range []string{"cpu:0", "nap:0", "cpu:reference"} {
			_, err = s.Open(t.Context(), d)
			require.NoError(t, err)
		}
		require.NoError(t, s.Close())
	}
	assert.Equal(t, 2, strings.Count(log.String(), "the pinned table does not apply to the device"), "%s", &log)
	assert.Contains(t, log.String(), "device=cpu:0")
	assert.Contains(t, log.String(), "device=nap:0")
	assert.Contains(t, log.String(), `made for \"another\"`)
}

func TestPinned(t *testing.T) {
	dir := t.TempDir()
	d := kept(t, filepath.Join(dir, "cache"), "")
	require.NoError(t, d.KeepTuned(t.Context(), tableFor(d, map[string]int{"planted.pause": 8})))
	name := filepath.Join(dir, "pinned.json")
	f, err := os.Create(name)
	require.NoError(t, err)
	table := tableFor(d, map[string]int{"planted.pause": 24})
	require.NoError(t, table.Write(f))
	require.NoError(t, f.Close())
	pinned := kept(t, filepath.Join(dir, "cache"), name)
	assert.Equal(t, 24, chosen(pinned, pause), "before what was kept")
	assert.Equal(t, table, pinned.Choices().Table())

	for setting, wrong := range map[string]error{filepath.Join(dir, "none.json"): runtime.ErrInvalidArgument,
		"fisrt":    runtime.ErrInvalidArgument,
		os.Args[0]: runtime.ErrFormat} {
		cfg := plantedConfig()
		cfg.Tune = setting
		s, err := runtime.New(cfg)
		require.NoError(t, err)
		_, err = s.Open(t.Context(), "cpu:0")
		require.ErrorIs(t, err, wrong)
		if setting == "fisrt" {
			assert.ErrorContains(t, err, `CONCORD_TUNE, Config.Tune: "fisrt" is neither off nor first nor the file of a table`)
		}
		require.NoError(t, s.Close())
	}
}

// A table of an earlier version of Concord, which had one version of all choices, is not used: where it was kept the
// device has the defaults, and where it is pinned the error says why.
func TestKeptByAnEarlierVersion(t *testing.T) {
	dir := t.TempDir()
	cache := filepath.Join(dir, "cache")
	d := kept(t, cache, "")
	require.NoError(t, d.KeepTuned(t.Context(), tableFor(d, map[string]int{"planted.pause": 8})))
	files, err := filepath.Glob(filepath.Join(cache, "tuned", "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	text := []byte(`{"for": "planted", "choices": "0123456789abcdef", "made": "2026-01-31T12:00:00Z",
		"values": {"planted.pause": 8}}`)
	require.NoError(t, file.Keep(filepath.Dir(files[0]), filepath.Base(files[0]), text))
	assert.Nil(t, kept(t, cache, "").Choices().Table())

	pinned := filepath.Join(dir, "pinned.json")
	require.NoError(t, os.WriteFile(pinned, text, 0o600))
	cfg := plantedConfig()
	cfg.Tune = pinned
	s, err := runtime.New(cfg)
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Open(t.Context(), "cpu:0")
	require.ErrorIs(t, err, runtime.ErrFormat)
	assert.ErrorContains(t, err, "made by an earlier version of Concord")
}

// Bundles of a program carry tables, which a table that was kept on the machine replaces.
func TestCarried(t *testing.T) {
	dir := t.TempDir()
	d := kept(t, filepath.Join(dir, "cache"), "")
	text := func(table *choice.Table) *fstest.MapFile {
		var b bytes.Buffer
		require.NoError(t, table.Write(&b))
		return &fstest.MapFile{Data: b.Bytes()}
	}
	other := tableFor(d, map[string]int{"planted.way": slowWay})
	other.For = "another"
	own := tableFor(d, map[string]int{"planted.pause": 24})
	cfg := plantedConfig()
	cfg.CacheDir = filepath.Join(dir, "cache")
	cfg.Bundles = fstest.MapFS{"a/other.json": text(other), "b/no table.json": {Data: []byte("{}")},
		"c/own.json": text(own),
		"d/own.txt":  text(tableFor(d, map[string]int{"planted.pause": 8}))}
	s, err := runtime.New(cfg)
	require.NoError(t, err)
	defer s.Close()
	carried, err := s.Open(t.Context(), "cpu:0")
	require.NoError(t, err)
	assert.Equal(t, own, carried.Choices().Table())
	assert.Equal(t, 24, carried.Choices().Of(pause))
	assert.Equal(t, 24, chosen(carried, pause))
	require.NoError(t, carried.KeepTuned(t.Context(), tableFor(d, map[string]int{"planted.pause": 8})))
	assert.Equal(t, 8, chosen(carried, pause))
	require.NoError(t, carried.KeepTuned(t.Context(), nil))
	assert.Equal(t, 24, chosen(carried, pause))
}
