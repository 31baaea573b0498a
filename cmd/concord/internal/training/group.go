package training

// Training on several devices together, or on several members of one.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/concord-compute/concord/cmd/concord/internal/app"
	"github.com/concord-compute/concord/cmd/concord/internal/files"
	"github.com/concord-compute/concord/runtime"
	"github.com/concord-compute/concord/runtime/cluster"
	"github.com/concord-compute/concord/runtime/cluster/mpi"
)

// patience is how long members wait for one that compiles its kernels.
const patience = 10 * time.Minute

// mostMembers limits --members: each has all data, and a network of its own.
const mostMembers = 1024

// everyMember calls f once, or for each member of the group that the flags name.
func (l *flags) everyMember(ctx context.Context, a *app.App,
	f func(ctx context.Context, l *flags) error) (err error) {
	names, weights := []string{l.device}, []float64(nil)
	switch {
	case !l.given("devices") && l.members == 0 && !l.mpi:
		return f(ctx, l)
	case l.mpi && (l.devices != "" || l.members != 0):
		return app.Usagef("--mpi takes the place of --devices and --members: each process has one device, --device")
	case l.mpi && l.batch == "auto":
		return app.Usagef("--batch auto with --mpi: it has to be a number, since what other processes take of a device is " +
			"not known")
	case l.members < 0 || l.members > mostMembers:
		return app.Usagef("--members %d: it has to be from 0 to %d", l.members, mostMembers)
	case l.given("devices") && strings.Contains(","+strings.ReplaceAll(l.devices, " ", "")+",", ",,"):
		return app.Usagef("--devices %q: a name is empty", l.devices)
	case l.devices != "" && (l.given("device") || l.members != 0):
		return app.Usagef("--devices takes the place of --device and --members")
	case l.devices != "":
		if names, weights, err = weighted(strings.Split(strings.ReplaceAll(l.devices, " ", ""), ",")); err != nil {
			return err
		}
	}
	for flag, path := range map[string]string{"--data": l.data, "--labels": l.labels} {
		if path != "" && !files.CanReadAgain(path) {
			return app.Usagef("%s %s: it has to be a file, which every member reads", flag, path)
		}
	}
	if _, err := a.Open(app.Exactly); err != nil {
		return err
	}
	if names, weights, err = expanded(ctx, a, names, weights); err != nil {
		return err
	}
	var devs []*runtime.Device
	defer func() {
		for _, dev := range devs {
			err = errors.Join(err, dev.Close())
		}
	}()
	for _, name := range names {
		dev, err := a.Session.Open(ctx, name)
		if err != nil {
			return err
		}
		devs = append(devs, dev)
	}
	o := cluster.Options{Timeout: patience}
	var g *cluster.Group
	switch {
	case l.mpi:
		if g, err = (mpi.Options{Cluster: o}).Group(ctx, devs[0]); err != nil {
			return err
		}
	case l.members > 0:
		g, err = o.Virtual(devs[0], l.members)
	default:
		g, err = o.Of(devs...)
	}
	if err != nil {
		return app.UsageError(err)
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	return g.Do(ctx, func(ctx context.Context, m *cluster.Member) error {
		own := *l
		own.member, own.weights = m, weights
		return f(ctx, &own)
	})
}

// weighted divides what --devices lists into names and weights, as of "cuda:0=3". Without one in the list weights are
// nil, and otherwise 1 is that of a name without it.
func weighted(list []string) (names []string, weights []float64, err error) {
	given := false
	for _, one := range list {
		name, text, ok := strings.Cut(one, "=")
		w := 1.0
		if ok {
			given = true
			if w, err = strconv.ParseFloat(text, 64); err != nil || !(w > 0) || math.IsInf(w, 1) {
				return nil, nil, app.Usagef("--devices %s: the weight has to be a positive number", one)
			}
		}
		names, weights = append(names, name), append(weights, w)
	}
	if !given {
		weights = nil
	}
	return names, weights, nil
}

// expanded returns the names of the devices that names stand for, and the weight of each.
func expanded(ctx context.Context, a *app.App, names []string, weights []float64) (all []string, each []float64,
	err error) {
	for i, name := range names {
		list, err := cluster.Names(ctx, a.Session, name)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, list...)
		if weights != nil {
			each = append(each, slices.Repeat(weights[i:i+1], len(list))...)
		}
	}
	return all, each, nil
}

// where names the devices that train.
func (st *network) where(l *flags) string {
	switch {
	case l.member == nil:
		return st.dev.String()
	case l.mpi:
		return fmt.Sprintf("%d processes with %v", l.member.Size(), st.dev)
	case l.members > 0:
		return fmt.Sprintf("%d members of %v", l.members, st.dev)
	}
	var names []string
	for _, m := range l.member.Group().Members() {
		names = append(names, m.Device().String())
	}
	return strings.Join(names, ", ")
}
