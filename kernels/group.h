// Reductions within one group of GROUP items (a power of two, 128 unless defined).
#ifndef CONCORD_GROUP_H
#define CONCORD_GROUP_H

#ifndef GROUP
#define GROUP 128
#endif

// One group per row: rows are longer or shorter than a group, items stride over them.
#define ROW_KERNEL kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))

// s[0] = the combination of every item's x, as a tree of depth log₂ GROUP. All items
// of the group get here. Before s is used again, another barrier is needed.
#define GROUP_TREE(s, l, x, COMBINE)                                                               \
  s[l] = (x);                                                                                      \
  barrier(CLK_LOCAL_MEM_FENCE);                                                                    \
  for (uint width = GROUP / 2; width > 0; width /= 2) {                                            \
    if (l < width)                                                                                 \
      s[l] = COMBINE(s[l], s[l + width]);                                                          \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                  \
  }

// Combinations. The larger and smaller prefer a NaN, so that none is lost.
#define PLUS(a, b) ((a) + (b))
#define LARGER(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))

#endif
