package runtime

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A relative HOME or XDG_CACHE_HOME names no directory for caches: it would be one below the working directory.
func TestCacheDirOfARelativeHome(t *testing.T) {
	for _, home := range []string{".", "home", "../home"} {
		t.Setenv("XDG_CACHE_HOME", "")
		t.Setenv("HOME", home)
		assert.Empty(t, cacheDir(Config{}))
		t.Setenv("HOME", t.TempDir())
		t.Setenv("XDG_CACHE_HOME", home)
		assert.Empty(t, cacheDir(Config{}))
	}
}
