// Indices of the integer type INDEX, which is u32 unless it is defined.
#ifndef CONCORD_INDEX_H
#define CONCORD_INDEX_H

#include "elem.h"

#ifndef INDEX
#define INDEX u32
#endif
#define INDEX_TYPE JOIN(type_, INDEX)

#ifndef CLAMP
#define CLAMP 0
#endif

// The row that index i names, or a number that is not below rows if there is none. With -D CLAMP=1
// an index below 0 names the first row and one beyond the last row the last.
ulong row_of(INDEX_TYPE i, uint rows) {
#if CLAMP
  if (i < 0)
    return 0;
  if ((ulong)i >= rows && rows > 0)
    return rows - 1;
#endif
  return (ulong)i; // a negative index becomes a large number
}

#endif
