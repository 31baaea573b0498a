package program

// concord kernels: what is in the catalog, and how its kernels are launched.

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/ui"
	"github.com/concord-compute/concord/kernels"
)

// catalogFamily is one family in the document of kernels.
type catalogFamily struct {
	ID      string          `json:"id"`
	Doc     string          `json:"doc"`
	Kernels []catalogKernel `json:"kernels"`
	Types   []string        `json:"types"`
	Defines []string        `json:"definitions"`
	Text    string          `json:"text,omitempty"` // the comment at the top of the source
}

// catalogKernel is one kernel; its parameters are those with the definitions of one of its cases.
type catalogKernel struct {
	Name    string         `json:"name"`
	Params  []catalogParam `json:"params,omitempty"`
	Defines []string       `json:"with,omitempty"`
}

type catalogParam struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

// Kernels returns the command kernels.
func Kernels(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kernels [NAME...]",
		Short: "List the kernels of the catalog, or describe some of them",
		Long: `Kernels lists the families of the catalog: one portable source each, with the kernels in it, the
element types and the definitions that select a variant. With the NAME of a family or of a kernel it
prints what the kernels compute, their parameters, and the shapes and layouts that they take.

In a program, kernels.Unit gives a family's program for some definitions.`,
		Example: `  concord kernels
  concord kernels softmax nearest
  concord kernels --json gemm`,
	}
	return a.RunnableJSON(cmd, func(_ context.Context, args []string) error { return showKernels(a, args) })
}

func showKernels(a *app.App, names []string) error {
	if err := InCatalog("", names); err != nil {
		return err
	}
	list := []catalogFamily{}
	for _, f := range kernels.Families() {
		asked := func(name string) bool { return isOf(f, name) }
		if len(names) > 0 && !slices.ContainsFunc(names, asked) {
			continue
		}
		c := catalogFamily{ID: f.ID, Doc: f.Doc, Types: append([]string{}, f.Types...),
			Defines: append([]string{}, f.Defines...)}
		for _, k := range f.Kernels {
			c.Kernels = append(c.Kernels, catalogKernel{Name: k})
		}
		if len(names) > 0 {
			if err := c.describe(f); err != nil {
				return err
			}
		}
		list = append(list, c)
	}
	if a.JSON {
		return a.Document(map[string]any{"families": list})
	}
	if len(names) == 0 {
		listKernels(a, list)
		return nil
	}
	for i := range list {
		if i > 0 {
			a.Println()
		}
		describeKernels(a, &list[i])
	}
	return nil
}

// describe adds the comment of a family's source, and the parameters of its kernels.
func (c *catalogFamily) describe(f *kernels.Family) error {
	if f.Source != nil {
		text, err := fs.ReadFile(f.Source, f.ID+".cl")
		if err != nil {
			return err
		}
		c.Text = leadingComment(string(text))
	}
	cases := f.Cases(f)
	for i := range c.Kernels {
		k := &c.Kernels[i]
		at := slices.IndexFunc(cases, func(x kernels.Case) bool { return x.Kernel == k.Name })
		if at < 0 {
			continue // parity reports a kernel without a case
		}
		unit, err := kernels.Unit(f.ID, nil, cases[at].Defines...)
		if err != nil {
			return err
		}
		for _, d := range cases[at].Defines {
			if f.Text == nil { // the text of the others is generated from long definitions
				k.Defines = append(k.Defines, d.Name+"="+d.Value)
			}
		}
		if c.Text == "" {
			c.Text = leadingComment(unit.Text())
		}
		if decl, ok := unit.Kernel(k.Name); ok {
			for _, p := range decl.Params {
				k.Params = append(k.Params, catalogParam{p.Decl, p.Name})
			}
		}
	}
	return nil
}

// leadingComment returns the comment lines at the beginning of a source, without their slashes.
func leadingComment(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		words, is := strings.CutPrefix(line, "//")
		if !is {
			break
		}
		b.WriteString(strings.TrimPrefix(words, " "))
	}
	return b.String()
}

// listKernels prints a table of families.
func listKernels(a *app.App, list []catalogFamily) {
	t := ui.NewTable("FAMILY", "KERNELS", "COMPUTES")
	for i := range list {
		t.Add(list[i].ID, fmt.Sprint(len(list[i].Kernels)), list[i].Doc)
	}
	t.Write(a.Stdout, "")
	a.Println("\nconcord kernels NAME describes a family or a kernel.")
}

// describeKernels prints all of one family.
func describeKernels(a *app.App, c *catalogFamily) {
	a.Printf("%s: %s\n\n", c.ID, c.Doc)
	if len(c.Types) > 0 {
		a.Printf("types        %s\n", strings.Join(c.Types, " "))
	}
	if len(c.Defines) > 0 {
		a.Printf("definitions  %s\n", strings.Join(c.Defines, " "))
	}
	for _, k := range c.Kernels {
		params := make([]string, len(k.Params))
		for i, p := range k.Params {
			params[i] = p.Type + " " + p.Name
		}
		a.Printf("\n%s(%s)", k.Name, strings.ReplaceAll(strings.Join(params, ", "), "* ", "*"))
		if len(k.Defines) > 0 {
			a.Printf("\n  with %s", strings.Join(k.Defines, " "))
		}
		a.Println()
	}
	if c.Text == "" {
		c.Text = "The text is generated from the definitions.\n"
	}
	a.Printf("\n%s", c.Text)
}

// isOf reports whether a name is that of a family, of one of its kernels, or of both, as in softmax/softmax.
func isOf(f *kernels.Family, name string) bool {
	family, kernel, both := strings.Cut(name, "/")
	return name == f.ID || slices.Contains(f.Kernels, name) || both && family == f.ID && slices.Contains(f.Kernels, kernel)
}

// InCatalog finds names that are not in the catalog. The error begins with flag, by which they were given.
func InCatalog(flag string, names []string) error {
	for _, name := range names {
		var ids []string
		known := false
		for _, f := range kernels.Families() {
			known = known || isOf(f, name)
			ids = append(ids, f.ID)
		}
		if !known {
			return app.Usagef("%s%s: not in the catalog; its families are %s", flag, name, strings.Join(ids, ", "))
		}
	}
	return nil
}
