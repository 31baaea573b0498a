// out[q·nVectors + v] = Σ (queries[q][d] - vectors[v][d])², the squared distance of
// every query to every vector.
//
//   l2_distance_fp32  float, summed in float
//   l2_distance_fp16  half; difference and sum in float
//   l2_distance_int8  components x stored as the integer 127·x: summed exactly, then
//                     one division by 127²
#include "elem.h"

#define ITEMS 8
#define EACH 8
#define SPAN 64
#define DEPTH 16

// Reads components d0 to d0 + DEPTH - 1 of a row into the array part; 0 for those that do not
// exist.
#define READ_ROW(part, p, row, rows)                                                               \
  if ((row) < (rows) && d0 + DEPTH <= dim)                                                         \
    vstore16(READ16(p, (row)*dim + d0), 0, part);                                                  \
  else                                                                                             \
    for (uint d = 0; d < DEPTH; d++)                                                               \
      part[d] = (row) < (rows) && d0 + d < dim ? READ(p, (row)*dim + d0 + d) : 0;

#define SQUARE_AND_ADD(x, sum) MAD(x, x, sum)

#define NAME l2_distance_fp32
#define STORED float
#define READ load_f32
#define READ16(p, i) vload16(0, (p) + (i))
#define NUMBER float
#define VEC float8
#include "l2_tile.h"
#undef NAME
#undef STORED
#undef READ
#undef READ16

#define NAME l2_distance_fp16
#define STORED half
#define READ load_f16
#define READ16(p, i) vload_half16(0, (p) + (i))
#include "l2_tile.h"
#undef NAME
#undef STORED
#undef READ
#undef READ16
#undef NUMBER
#undef VEC
#undef SQUARE_AND_ADD

// Differences are unsigned and wrap; their squares modulo 2^32 are correct nevertheless.
#define NAME l2_distance_int8
#define STORED char
#define READ(p, i) ((uint)(p)[i])
#define READ16(p, i) convert_uint16(convert_int16(vload16(0, (p) + (i))))
#define NUMBER uint
#define VEC uint8
#define SQUARE_AND_ADD(x, sum) ((x) * (x) + (sum))
#define EXACT
#include "l2_tile.h"
