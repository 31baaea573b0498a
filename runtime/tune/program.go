package tune

// The program's own file, which is started again to measure.

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/concord-compute/concord/runtime"
)

// runs is the file of the running program on systems with proc(5), also after the name that it had was given to
// another.
const runs = "/proc/self/exe"

var (
	began        sync.Once
	beganAs      os.FileInfo // the program's file when FirstUse was called; nil if it could not be read
	toldReplaced sync.Once
)

func remember() {
	if self, err := os.Executable(); err == nil {
		beganAs, _ = os.Stat(self)
	}
}

// thisProgram returns the name of the program's file. The error is ErrUnsupported if that is another file now, of which
// it warns once: a newer version would measure its own kernels, and a program that does not call FirstUse would do its
// work once more.
func thisProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	if err := sameProgram(self, runs, beganAs); err != nil {
		toldReplaced.Do(func() { slog.Warn("concord: nothing is tuned at its first use", "reason", err) })
		return "", err
	}
	return self, nil
}

var errReplaced = errors.New("the program's file was replaced since the program began")

// sameProgram returns an error unless a file is the one that runs, and has not changed since it began. Without a file
// that runs, or nil for how it began, that is not compared.
func sameProgram(self, runs string, began os.FileInfo) error {
	now, err := os.Stat(self)
	if err != nil {
		return fmt.Errorf("%w: %w: %w", errReplaced, err, runtime.ErrUnsupported)
	}
	running, err := os.Stat(runs)
	switch {
	case err == nil && !os.SameFile(running, now),
		began != nil && (!os.SameFile(began, now) || began.Size() != now.Size() || !began.ModTime().Equal(now.ModTime())):
		return fmt.Errorf("%s: %w: %w", self, errReplaced, runtime.ErrUnsupported)
	}
	return nil
}
