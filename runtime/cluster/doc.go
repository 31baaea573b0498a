// Package cluster has several devices compute together: a [Group] of members, each with a rank and a device, and the
// collectives by which they exchange data. [Placement] divides work among members, and a [Runner] moves work from a
// device that fails to another one.
//
// # Basics
//
// A program is written once, for a member, and runs on all of them (SPMD):
//
//	g, err := cluster.Open(ctx, "cuda:*")
//	defer g.Close()
//	err = g.Do(ctx, func(ctx context.Context, m *cluster.Member) error {
//		gradient, err := work(ctx, m.Device(), m.Rank())
//		if err != nil {
//			return err
//		}
//		return m.AllReduce(ctx, nil, cluster.Mean, gradient, gradient)
//	})
//
// The members are devices of this process ([Open], [Of]), of one backend or several; shares of one device, for tests
// ([Virtual]); or processes that a [Link] connects, of which each has one member ([Join]).
//
// # Collectives
//
// [Member.AllReduce], [Member.Reduce], [Member.Broadcast], [Member.AllGather], [Member.ReduceScatter],
// [Member.AllToAll] and [Member.Barrier] are calls that all members make; [Member.Send], [Member.Recv] and
// [Member.SendRecv] are between two. Each works on a stream: it comes after the work queued on it, and later work
// comes after it. They take all types of elements that buffers hold, of any length, and any number of members.
//
// The result of an operation has the same bits at all members, and in every run with the same number of members,
// options and devices: each element is computed by one member, in one order. For floats that order depends on the
// [Algorithm], so that other members or another algorithm give other roundings; with the library of the devices' vendor
// runs are alike as far as it says so. Of k elements of f32, the error is at
// most k·2^-23 times the sum of their magnitudes; f16 and bf16 are added in f32 and rounded once.
//
// # Ways
//
// Between members of one device a kernel reads the other one's memory where it is. Between devices of one process
// data moves by [runtime.Stream.CopyFrom]: from one to the other where the receiving driver can, else through the
// host. Over a link data passes the host's memory, on a CPU the buffers themselves. [Group.Stats] counts the bytes of
// each way, and [PairOf] says which one two devices have; a [Pair] copies, too.
//
// Members whose devices are of one vendor with a library of collectives, NCCL or RCCL, use that, where it is installed
// and computes what this package promises: see [Algorithm] and [Group.Library]. Then the host waits until the
// collective is done.
//
// # Failures
//
// All members return the same error, a [*MemberError] that names the member to blame, when one of them fails, when it
// does not come in time ([Options.Timeout]), when its context is done, or when they do not call the same. Before data
// moves all members agree on the call, so that arguments that are refused leave the group as it was. A failure after
// that ends the group: all later collectives return its error. Work that was queued and fails later makes the streams
// fail that wait for it, as between any streams of one device, and the next collective returns it.
//
// A kernel that never ends is noticed only where something waits for it: by [Member.Barrier], between devices, and over
// a link. [runtime.Device.Abandon] gives such a device up.
//
// # Failover
//
// Without a group, a [Runner] does units of work on the first of several devices that can, the CPU last, and repeats a
// unit on the next one where a device fails:
//
//	r, err := cluster.NewRunner(ctx, "cuda:0", "opencl:0")
//	defer r.Close()
//	err = r.Run(ctx, "search", func(ctx context.Context, dev *runtime.Device) error {
//		return search(ctx, dev, queries, found) // uploads, computes, reads the result
//	})
//
// A [Router] has each problem done on the one of two devices, such as the CPU and a GPU, on which it finishes first, as
// it learns from measured times.
//
// [Runner.RunGroup] does a unit on a group of its devices, and without a member that fails. Package nn trains so
// (Train), and goes on from its last checkpoint; package tensor has scopes on a Runner (NewRunnerScope), and package
// ann indexes (Options.Runner).
package cluster
