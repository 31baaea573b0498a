package devices

// Hints for doctor: the versions of vendors' tools, and variables of the environment.

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/runtime/config"
)

// tool is the version that a vendor's program reports.
type tool struct {
	Name    string `json:"name"`
	Path    string `json:"path,omitempty"`
	Version string `json:"version,omitempty"`
	Error   string `json:"error,omitempty"`
}

func (t tool) String() string {
	switch {
	case t.Error != "":
		return t.Error
	case t.Version == "":
		return t.Path + ": version not understood"
	}
	return t.Version + " (" + t.Path + ")"
}

// defaultToolTimeout is how long one tool may take.
const defaultToolTimeout = 5 * time.Second

// tools are the programs and the parsers of their output.
var tools = []struct {
	name  string
	args  []string
	parse func(string) string
}{
	{"nvidia-smi", []string{"--query-gpu=driver_version", "--format=csv,noheader"}, ui.FirstLine},
	{"nvcc", []string{"--version"}, cudaRelease},
	{"rocm-smi", []string{"--version"}, rocmVersion},
}

// hints runs every tool at the same time.
func hints(ctx context.Context, timeout time.Duration) []tool {
	if timeout <= 0 {
		timeout = defaultToolTimeout
	}
	found := make([]tool, len(tools))
	var wg sync.WaitGroup
	for i, t := range tools {
		wg.Go(func() { found[i] = ask(ctx, timeout, t.name, t.args, t.parse) })
	}
	wg.Wait()
	return found
}

func ask(ctx context.Context, timeout time.Duration, name string, args []string, parse func(string) string) tool {
	t := tool{Name: name}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Error = "not found in PATH"
		return t
	}
	t.Path = path
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second // a process that it started may hold its pipe
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		t.Error = path + ": no answer within " + timeout.String()
	case err != nil:
		t.Error = path + ": " + ui.OneLine(err.Error()+" "+ui.FirstLine(string(out)))
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
			t.Error += " " + ui.FirstLine(string(exit.Stderr))
		}
	default:
		t.Version = parse(string(out))
	}
	return t
}

// cudaRelease reads the output of nvcc: between "release" and the next comma.
func cudaRelease(text string) string {
	for line := range strings.Lines(text) {
		if _, rest, ok := strings.Cut(line, "release"); ok {
			release, _, _ := strings.Cut(rest, ",")
			return strings.TrimSpace(release)
		}
	}
	return ""
}

// rocmVersion reads the output of rocm-smi: after the first colon of the first
// line with "Version".
func rocmVersion(text string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, "Version") {
			_, rest, _ := strings.Cut(line, ":")
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// setting is a variable of the environment.
type setting struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Set     bool   `json:"set"`
	Default string `json:"default,omitempty"`
	Doc     string `json:"doc,omitempty"`
}

// foreign are variables of other software that affect discovery.
var foreign = []struct{ name, doc string }{
	{"CUDA_HOME", "the CUDA toolkit"}, {"CUDA_VISIBLE_DEVICES", "the GPUs that CUDA shows"},
	{"ROCM_PATH", "the ROCm installation"}, {"ROCR_VISIBLE_DEVICES", "the GPUs that ROCm shows"},
	{"HIP_VISIBLE_DEVICES", "the GPUs that HIP shows"}, {"OCL_ICD_VENDORS", "the OpenCL drivers that the loader finds"},
	{"CXX", "the host's C++ compiler"}, {"LD_LIBRARY_PATH", "where libraries are looked for first"},
}

// settings lists Concord's own variables, variables of other software that are set, and unknown
// names that begin like Concord's.
func settings() []setting {
	var list []setting
	for _, v := range config.Variables() {
		value, set := os.LookupEnv(v.Name)
		list = append(list, setting{v.Name, value, set, v.Default, v.Doc})
	}
	for _, v := range foreign {
		if value, set := os.LookupEnv(v.name); set {
			list = append(list, setting{Name: v.name, Value: value, Set: true, Doc: v.doc})
		}
	}
	for _, name := range config.Unknown(os.Environ()) {
		doc := "no setting of Concord: misspelt?"
		if meant := config.Nearest(name); meant != "" {
			doc = "no setting of Concord: a misspelt " + meant + "?"
		}
		list = append(list, setting{Name: name, Value: os.Getenv(name), Set: true, Doc: doc})
	}
	return list
}
