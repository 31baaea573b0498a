package kernels

// The family norm and its cases, with the effect of a rounded mean on the elements of a row.

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

func init() {
	outline(Family{
		ID: "norm", Doc: "layer_norm and rms_norm: rows divided by their standard deviation or root mean square, scaled " +
			"and shifted",
		Kernels: []string{"layer_norm", "rms_norm"}, Types: floatTypes, Defines: []string{"T"},
		Arguments: normArguments, Reference: refNorm, Bound: knows(normLaunch), Rows: normRows,
		Cases: normCases,
	})
}

func normCases(f *Family) (list []Case) {
	for _, t := range f.Types {
		for _, k := range f.Kernels {
			for i, s := range [][2]int{{1, 1}, {0, 5}, {3, 0}, {4, 2}, {31, 33}, {3, 127}, {2, 129}, {7, 1000}, {1, 65537}} {
				if t != "f32" && i != 0 && i != 4 && i != 7 {
					continue
				}
				list = append(list, normCase(f, k, t, "", s[0], s[1], 1e-5, Uniform(t, s[0]*s[1], 31, -3, 3)))
			}
			n := 200
			odd := mixed(mixed(Uniform(t, 3*n, 32, -1, 1), math.NaN(), 7), math.Inf(1), n+150)
			list = append(list,
				normCase(f, k, t, " NaN and Inf", 3, n, 1e-5, odd),
				normCase(f, k, t, " all equal", 2, n, 0.25, constant(2*n, 0.3)),
				normCase(f, k, t, " far from 0", 2, n, 1e-3, Uniform(t, 2*n, 33, 30, 34)))
		}
	}
	return list
}

func normCase(f *Family, k, t, note string, rows, n int, eps float64, data func() []float64) Case {
	args := []Arg{in(t, rows*n, data), in(t, n, Uniform(t, n, 34, 0.5, 2))}
	if k == "layer_norm" {
		args = append(args, in(t, n, Uniform(t, n, 35, -1, 1)))
	}
	args = append(args, out(t, rows*n), uintArg(rows), uintArg(n), value(scalarOf(t), eps))
	return f.Case(k, t, fmt.Sprintf("%d×%d%s", rows, n, note), rows).with(args...).
		within("|γ|/w·(e + ε|x-m|) + ε·|y-β|·((d + 10)/2 + 8) + |y-β|·e²/2w² + 2ε|y|, w² = v + epsilon, e = ε·(d·mean|x| "+
			"+ 6|m|), "+additionsFormula,
			"e is the error of the mean m: it changes each deviation by e, and the variance only by e², since the deviations "+
				"sum to 0; squares "+
				"err by 3ε, their sum by dε, its division by n by 2.5 ulp = 5ε; the reciprocal root halves these errors and "+
				"adds 2 ulp = 4ε; the product with it, that "+
				"with γ, the sum with β and the reference round once each; for rms_norm m and e are 0",
			func(_ int, in [][]float64, ref []float64) []float64 {
				return normBound(k, t, rows, n, eps, in, ref)
			})
}

func normBound(k, t string, rows, n int, eps float64, in [][]float64, ref []float64) []float64 {
	u, tiny := Roundoff(t), Smallest(t)
	b := make([]float64, len(ref))
	depth := float64(additions(n, 0))
	for r := range rows {
		x, y, bound := in[0][r*n:r*n+n], ref[r*n:r*n+n], b[r*n:r*n+n]
		mean, size, v := 0.0, 0.0, 0.0
		for _, z := range x {
			mean, size = mean+z/float64(n), size+math.Abs(z)/float64(n)
		}
		e := u * (depth*size + 6*math.Abs(mean))
		if k == "rms_norm" {
			mean, e = 0, 0
		}
		for _, z := range x {
			v += (z - mean) * (z - mean) / float64(n)
		}
		w := math.Sqrt(v + eps)
		for j, z := range x {
			gamma := math.Abs(in[1][j])
			scaled := gamma * math.Abs(z-mean) / w
			bound[j] = Stored(t, y[j], gamma/w*(e+u*math.Abs(z-mean)+2*tiny)+scaled*(u*((depth+10)/2+8)+e*e/(2*w*w))+
				2*u*math.Abs(y[j])+2*tiny)
		}
	}
	return b
}

// normArguments checks a launch of either kernel; rms_norm lacks beta, argument 2 of layer_norm.
func normArguments(c *Call) bool {
	t, out := c.Type("T"), 2
	if c.Kernel == "layer_norm" {
		out = 3
	}
	n := int(c.Int(out + 2))
	all := c.Product(int(c.Int(out+1)), n)
	if all == 0 {
		return false
	}
	needAll(c, t, all, 0, out)
	for i := 1; i < out; i++ {
		needAll(c, t, n, i)
	}
	return true
}

// refNorm computes (x - mean) / √(variance + epsilon) · gamma + beta; for rms_norm without mean and beta.
func refNorm(c *Call) error {
	t, out := c.Type("T"), 2
	centered := c.Kernel == "layer_norm"
	if centered {
		out = 3
	}
	rows, n := int(c.Int(out+1)), int(c.Int(out+2))
	get, gamma, set := c.Get(0, t), c.Get(1, t), c.Set(out, t)
	for r := range rows {
		x := refRead(get, r*n, n, 1)
		if centered {
			floats.AddConst(-refSum(slices.Clone(x))/float64(n), x)
		}
		squares := slices.Clone(x)
		floats.Mul(squares, x)
		width := math.Sqrt(refSum(squares)/float64(n) + c.Float(out+3))
		for j, z := range x {
			y := z / width * gamma(j)
			if centered {
				y += c.Get(2, t)(j)
			}
			set(r*n+j, y)
		}
	}
	return nil
}
