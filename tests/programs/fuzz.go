package programs

import (
	"fmt"
	"strings"
	"time"
)

// Difference is a difference between the results of two targets.
type Difference struct {
	Program *Program
	Targets [2]*Target
	Results [2]Result
	What    string
	At      int     // the launch, or -1
	Others  string  // the results of the other targets
	Alone   *Target // the foreign target that differs, if another foreign one agrees with the other side
}

func (d *Difference) String() string {
	text := fmt.Sprintf("seed %d: %s and %s: %s", d.Program.Seed, d.Targets[0].Name, d.Targets[1].Name, d.What)
	for i, r := range d.Results {
		if r.Err != "" {
			text += fmt.Sprintf("\n%s: %s", d.Targets[i].Name, r.Err)
		}
	}
	return text + d.Others
}

// Pool has a process for each target. It is not safe for concurrent use.
type Pool struct {
	running map[*Target]*process
	Ran     map[string]Spent // work of each target
}

// Spent is the number of programs that a target ran to their end, and the time that this took.
type Spent struct {
	Programs int
	Time     time.Duration
}

func (s Spent) String() string { return fmt.Sprintf("%d in %v", s.Programs, s.Time.Round(time.Second)) }

// Close ends the processes.
func (p *Pool) Close() {
	for _, r := range p.running {
		r.close()
	}
	p.running = nil
}

// Run runs a program on a target. If the target's process dies, the Result has an error.
func (p *Pool) Run(t *Target, prog *Program) Result {
	if p.running == nil {
		p.running, p.Ran = map[*Target]*process{}, map[string]Spent{}
	}
	r := p.running[t]
	if r != nil && r.ran >= perProcess {
		r.close()
		r = nil
	}
	if r == nil {
		var err error
		if r, err = start(t); err != nil {
			return Result{Err: err.Error()}
		}
		p.running[t] = r
	}
	begin := time.Now()
	res, err := r.run(&request{prog.Text(), prog.Launches})
	if err != nil {
		r.close()
		delete(p.running, t)
		return Result{Err: err.Error()}
	}
	if res.Err == "" && !res.Lacks {
		spent := p.Ran[t.Name]
		p.Ran[t.Name] = Spent{spent.Programs + 1, spent.Time + time.Since(begin)}
	}
	return res
}

// Try runs a program on all the targets and returns the first difference from the first target, or
// nil. A program that all targets refuse is a mistake of the generator and also counts as a
// difference.
func (p *Pool) Try(prog *Program, targets []*Target) *Difference {
	var first *Result
	var base *Target // the target that first is a result of
	for _, t := range targets {
		res := p.Run(t, prog)
		if res.Lacks {
			continue
		}
		if first == nil {
			first, base = &res, t
		}
		what, at := Compare(prog, first, &res, t.Rough || base.Rough)
		if res.Err != "" && first.Err != "" && t != base {
			what = "both fail"
		}
		if what != "" {
			return &Difference{Program: prog, Targets: [2]*Target{base, t}, Results: [2]Result{*first, res}, What: what, At: at}
		}
	}
	return nil
}

// Ask records with which of the two targets the others agree. A foreign target is alone if another
// foreign one agrees with the opposite side. Only foreign targets count here, since Concord's own
// share code.
func (p *Pool) Ask(d *Difference, targets []*Target) {
	var b strings.Builder
	for _, t := range targets {
		if t == d.Targets[0] || t == d.Targets[1] || t.Device == "" {
			continue
		}
		res := p.Run(t, d.Program)
		if res.Lacks || res.Err != "" || d.At >= 0 && res.Outputs[d.At] == nil {
			continue
		}
		for i, r := range d.Results {
			if what, _ := Compare(d.Program, r.only(d.At), res.only(d.At), t.Rough || d.Targets[i].Rough); what == "" {
				fmt.Fprintf(&b, "\n%s agrees with %s", t.Name, d.Targets[i].Name)
				if t.Foreign && d.Targets[1-i].Foreign {
					d.Alone = d.Targets[1-i]
				}
			}
		}
	}
	d.Others = b.String()
}

// only returns the result of one launch, or the whole result if at is -1.
func (r Result) only(at int) *Result {
	if at >= 0 && r.Err == "" {
		outputs := make([][][]byte, len(r.Outputs))
		outputs[at] = r.Outputs[at]
		r.Outputs = outputs
	}
	return &r
}

// kindOf returns the properties of a difference that have to stay the same while its program is
// reduced.
func (d *Difference) kindOf() string {
	if d.Results[0].Err == "" && d.Results[1].Err == "" {
		return "values"
	}
	var b strings.Builder
	for _, r := range d.Results {
		word, rest, _ := strings.Cut(r.Err, " ")
		b.WriteString(word)
		for _, line := range strings.Split(rest, "\n") {
			if _, message, found := strings.Cut(line, "rror: "); found {
				b.WriteString(" " + strings.Join(strings.Fields(quoted.ReplaceAllString(message, "")), " "))
				break
			}
		}
		b.WriteString("|")
	}
	return b.String()
}
