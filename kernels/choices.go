package kernels

// Tiles of portable kernels, as choices: definitions of their programs.

import (
	"slices"
	"strconv"

	"github.com/concord-compute/concord/runtime/choice"
	"github.com/concord-compute/concord/source"
)

// tile is a definition that a choice decides.
type tile struct {
	define string
	by     *choice.Choice
}

// productTiles has the tile of the portable products.
var productTiles = []tile{
	{"ITEMS", side("items", "items of a group along rows and columns of a product",
		"64 items run on every device", 8, 4, 8, 16)},
	{"EACH", side("each", "rows of the results of an item", "64 sums fit in the registers of every device", 8, 4, 8, 16)},
	{"WIDE", side("wide", "columns of the results of an item, which are one vector",
		"see kernels.gemm.each", 8, 4, 8, 16)},
	{"DEPTH", side("depth", "columns of the left matrix in local memory at a time", "more take more local memory",
		16, 16, 32, 64)},
	{"PAD", side("pad", "elements between rows of the right matrix in local memory", "rows begin in other banks",
		4, 0, 4, 16)},
}

// tiled returns the definitions of tiles, and adds their values to those of other definitions.
func tiled(list []tile, values map[string][]string, others ...string) []string {
	for _, t := range list {
		others = append(others, t.define)
		for _, v := range t.by.Values {
			values[t.define] = append(values[t.define], strconv.Itoa(v))
		}
	}
	return others
}

// side registers a choice of the tile of products. Each sum has the same order in every tile.
func side(name, doc, why string, usual int, values ...int) *choice.Choice {
	return choice.New(choice.Choice{Name: "kernels.gemm." + name, Doc: doc, Why: why, Default: usual, Values: values,
		Only: true})
}

// Chosen returns the definitions of a program of a family with those of the tile that was chosen for a device, which
// [Geometry] reads from the program. of returns the values, as choice.Set and choice.State have them. Products that are
// not summed in float32 have the default: their sums take other memory than those that were measured. So
// have programs whose definitions name any part of a tile: parts of two tiles were never measured together.
func Chosen(family string, defines []source.Define, of func(c *choice.Choice) int) []source.Define {
	if family != "gemm" && family != "gemm_batch" && family != "gemm_bias" {
		return defines
	}
	for _, d := range defines {
		if d.Name == "T" && d.Value != "f32" && d.Value != "f16" && d.Value != "bf16" ||
			slices.ContainsFunc(productTiles, func(t tile) bool { return t.define == d.Name }) {
			return defines
		}
	}
	for _, t := range productTiles {
		if v := of(t.by); v != t.by.Default {
			defines = append(slices.Clip(defines), source.Define{Name: t.define, Value: strconv.Itoa(v)})
		}
	}
	return defines
}

// gemmTile is Family.Tile of products whose tile may be chosen.
func gemmTile(u *source.Unit, _ string) (rows, cols int) {
	size := func(name string) int {
		if v, ok := u.Define(name); ok {
			if n, err := strconv.Atoi(v); err == nil {
				return n
			}
		}
		return 8
	}
	return size("ITEMS") * size("EACH"), size("ITEMS") * size("WIDE")
}
