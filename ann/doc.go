// Package ann finds nearest neighbours: the k vectors of an index that are nearest to a query, by any of ten
// metrics or one of the program's own.
//
// # Basics
//
//	ix, err := ann.NewFlat(dev, 128, ann.Euclidean, ann.FlatOptions{})
//	err = ix.Add(ctx, ids, vectors) // len(ids) rows of 128 components
//	found, err := ix.Search(ctx, nil, query, 10, nil)
//	for _, r := range found {
//		fmt.Println(r.ID, r.Distance)
//	}
//
// # Kinds
//
// [New] makes an index by the names of its kind and metric:
//
//   - flat, gpu, brute, bruteforce: a [Flat] index compares a query with every vector, on any device of package
//     runtime or several at once. Its vectors stay in the device's memory as float, half or bytes ([Precision]),
//     or pass through it if it has no room.
//   - hnsw: an [HNSW] index follows the links of a graph, on the CPU: it compares a query with a few hundred
//     vectors, and finds most of the nearest.
//   - ivf: an [IVF] index keeps vectors in lists around centres, on any device, and compares a query with those
//     of the lists that are nearest to it. It is made in less time than a graph, and needs little memory beside
//     the vectors.
//   - pq: an [IVF] index that also keeps a short code for each vector (product quantization, IVFOptions.Codes),
//     compares the codes first and then the vectors of the nearest: for millions of vectors.
//
// [NewSharded] makes an index of any kind in shards, one for each member of a group of devices
// ([cluster.Group]) or of processes: for more vectors than one device has room for, and to build and search them in
// parallel. The results are merged, and Save and [OpenSharded] keep a file for each shard.
//
// With Options.Runner an index survives its device: [Moving] says how.
//
// # Results
//
// Results come in the order of their distances, and those of equal distance in the order of their ids; a
// distance that is NaN comes last. Ids are numbers that the program chooses, from 0 on. The unit of a distance
// is that of the metric: [L2Squared] is squared, [Euclidean] is the root of it.
//
// # Filters
//
// A [Filter] says which vectors may be found: ranges and sets of ids, masks, functions, and combinations. It is
// applied before the search, so that k results come wherever k vectors are admitted, and what it admits is
// computed once for as long as the index does not change.
//
// # Concurrency
//
// An index may be used from any goroutine. Searches run side by side; a change of the index waits for the searches that
// run, and searches that begin later wait for it. Of an [HNSW] index, searches and changes run side by side,
// and of an [IVF] index searches also run while vectors that are added are assigned to lists. Of a [Sharded] index
// searches wait for changes; in a job of several processes calls run one at a time.
package ann
