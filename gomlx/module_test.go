package gomlx_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A module of its own that follows README builds.
func TestModule(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```sh\n(go mod edit.*?)```").FindSubmatch(readme)
	if block == nil {
		t.Fatal("README has no commands for a module of its own")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := `package main

import (
	"github.com/gomlx/compute"

	_ "github.com/concord-compute/concord/gomlx"
)

func main() {
	b, err := compute.NewWithConfig("concord:cpu:0")
	if err != nil {
		panic(err)
	}
	print(b.Name())
}
`
	sums, err := os.ReadFile("go.sum") // so that nobody is asked for sums
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"main.go": []byte(program), "go.sum": sums} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commands := "go mod init example.org/m\n" + strings.ReplaceAll(string(block[1]), "/path/to/concord", root) + "go run ."
	c := exec.CommandContext(t.Context(), "sh", "-e", "-c", commands)
	c.Dir = dir
	c.Env = append(os.Environ(), "GOFLAGS=-trimpath", "GOWORK=off", "CGO_ENABLED=0", "GOPROXY=off")
	if out, err := c.CombinedOutput(); err != nil || !strings.HasSuffix(string(out), "concord") {
		t.Errorf("%v: %s", err, out)
	}
}
