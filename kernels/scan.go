package kernels

// The family scan and its cases: rows around the sizes of tiles, in one part and in several.

import (
	"fmt"
	"math"
	"math/big"
)

func init() {
	Register(Family{
		ID: "scan", Doc: "running sums of each row, by one group or by several",
		Kernels: []string{"scan_sum"}, Types: allTypes, Defines: []string{"T", "GROUP"},
		Source: sources, Arguments: scanArguments, Work: scanWork, Reference: refScan,
		Bound: knows(scanLaunch), Rows: scanRows, Cases: scanCases,
	})
}

func scanArguments(c *Call) bool {
	rows, n, parts := int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
	if parts == 0 {
		c.Fail(5, "a row cannot have 0 parts")
	}
	total := c.Product(rows, n)
	if total == 0 {
		return false
	}
	needAll(c, c.Type("T"), total, 0, 2)
	needAll(c, partialType(c.Type("T")), c.Product(rows, parts-1), 1)
	return true
}

// partialType returns the type of the sums of parts.
func partialType(t string) string {
	if t == "f16" || t == "bf16" {
		return "f32"
	}
	return t
}

// scanWork counts an operation for each element.
func scanWork(c *Call, bytes float64) (operations, moved float64) {
	return float64(int(c.Int(3)) * int(c.Int(4))), bytes
}

func scanCases(f *Family) (list []Case) {
	for _, t := range f.Types {
		for i, s := range [][3]int{{1, 1, 1}, {3, 33, 1}, {0, 4, 1}, {4, 0, 3}, {2, 1024, 1}, {2, 3001, 1}, {2, 3001, 4},
			{1, 70001, 9}, {2, 7, 5}, {1, 3, 200}} {
			if t == "f32" || i == 1 || i == 6 {
				list = append(list, scanCase(f, t, "", s[0], s[1], s[2], Uniform(t, s[0]*s[1], 71, -1e2, 1e2)))
			}
		}
		if IsFloat(t) {
			list = append(list, scanCase(f, t, " Inf and NaN", 2, 1500, 1,
				mixed(mixed(Uniform(t, 3000, 72, -1, 1), math.Inf(1), 40, 2800), math.NaN(), 1200)))
		}
	}
	for _, group := range []int{32, 256} {
		list = append(list, scanCase(f, "f32", "", 2, 3001, 4, Uniform("f32", 6002, 71, -1e2, 1e2)).grouped(group))
	}
	return list
}

func scanCase(f *Family, t, note string, rows, n, parts int, data func() []float64) Case {
	span := (n + parts - 1) / parts
	totals := func() []float64 { // other numbers than the sums of the parts, which are not the kernel's to check
		return Uniform(partialType(t), rows*(parts-1), 73, -1e2, 1e2)()
	}
	c := f.Case("scan_sum", t, fmt.Sprintf("%d×%d in %d%s", rows, n, parts, note), rows, parts).
		with(in(t, rows*n, data), in(partialType(t), rows*(parts-1), totals), out(t, rows*n), uintArg(rows), uintArg(n),
			uintArg(parts))
	if !IsFloat(t) {
		return c.exact("integers wrap")
	}
	return c.within("ε·(c·Σ|x| + |result|), c = the number of terms, among them the totals of the parts before",
		"no partial sum exceeds Σ|x|, whatever the order, and each of at most c additions rounds one; the reference "+
			"rounds once",
		func(_ int, in [][]float64, ref []float64) []float64 {
			b := make([]float64, len(ref))
			for r := range rows {
				before := 0.0
				for p := range parts {
					sum := before
					for i := p * span; i < min((p+1)*span, n); i++ {
						sum += math.Abs(in[0][r*n+i])
						b[r*n+i] = Stored(t, ref[r*n+i], Roundoff(t)*(float64(p+i-p*span+1)*sum+math.Abs(ref[r*n+i])))
					}
					if p < parts-1 {
						before += math.Abs(in[1][r*(parts-1)+p])
					}
				}
			}
			return b
		})
}

// refScan adds the elements one after the other, floating-point numbers with the errors of the additions.
func refScan(c *Call) error {
	t, rows, n, parts := c.Type("T"), int(c.Int(3)), int(c.Int(4)), int(c.Int(5))
	span := (n + parts - 1) / parts
	each := func(start func(), total, element func(at int)) {
		for r := range rows {
			for p := range parts {
				start()
				for q := range p {
					total(r*(parts-1) + q)
				}
				for i := p * span; i < min((p+1)*span, n); i++ {
					element(r*n + i)
				}
			}
		}
	}
	if !IsFloat(t) {
		get, totals, set, sum := refGetInt(c, 0, t), refGetInt(c, 1, t), refSetInt(c, 2, t), new(big.Int)
		each(func() { sum.SetInt64(0) }, func(at int) { sum.Add(sum, totals(at)) }, func(at int) {
			set(at, sum.Add(sum, get(at)))
		})
		return nil
	}
	get, totals, set := c.Get(0, t), c.Get(1, partialType(t)), c.Set(2, t)
	var sum, lost float64
	add := func(x float64) float64 {
		to := sum + x
		if back := to - sum; !math.IsInf(to, 0) {
			lost += (sum - (to - back)) + (x - back)
		}
		if sum = to; math.IsInf(sum, 0) || sum != sum {
			return sum
		}
		return sum + lost
	}
	each(func() { sum, lost = 0, 0 }, func(at int) { add(totals(at)) }, func(at int) { set(at, add(get(at))) })
	return nil
}
