// Reductions within one group of GROUP items (a power of two, 128 unless defined).
#ifndef CONCORD_GROUP_H
#define CONCORD_GROUP_H

#ifndef GROUP
#define GROUP 128
#endif

// One group per row. A row may have any length: item i processes elements i, i + GROUP and so on.
//
// A group beyond the last row takes a row of no elements. It must not return early, because PoCL 3.1 would then let
// items beyond the end of a row store in the last loops of other groups.
#define ROW_KERNEL kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))

// s[0] = the combination of the x of all items, computed by a tree of depth log₂ GROUP. All items
// of the group have to execute it. Before s is used again, another barrier is needed.
#define GROUP_TREE(s, l, x, COMBINE)                                                               \
  s[l] = (x);                                                                                      \
  barrier(CLK_LOCAL_MEM_FENCE);                                                                    \
  for (uint width = GROUP / 2; width > 0; width /= 2) {                                            \
    if (l < width)                                                                                 \
      s[l] = COMBINE(s[l], s[l + width]);                                                          \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                  \
  }

// Combinations. LARGER and SMALLER return a NaN if either argument is NaN.
#define PLUS(a, b) ((a) + (b))
#define LARGER(a, b) ((a) > (b) || IS_NAN(a) ? (a) : (b))
#define SMALLER(a, b) ((a) < (b) || IS_NAN(a) ? (a) : (b))

#endif
