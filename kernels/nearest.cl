// The k nearest of many vectors for each of a few queries, in one pass over the vectors.
//
//   nearest        for every query and every part of the vectors the k nearest, in order
//   nearest_merge  the k nearest of several such lists
//
// queries and vectors are rows of dim elements, one after another.
//
// -D METRIC selects the distance: l2, Σ (q - v)², the default; ip, -Σ q·v; cosine, 1 - Σ q·v / (|q|·|v|)
// with the quotient in [-1, 1], and 1 if either norm is 0. Smaller is nearer; NaN comes after all numbers,
// and of equal distances the smaller index first. T is f32, f16, bf16 or i8; distances are float. Those of
// i8 are summed exactly, in the unit of the stored integers, and rounded once.
//
// Part p of parts has the vectors from p·⌈nVectors/parts⌉ on. The lists of query q are
// distances[(q·parts + p)·k + i] and places, likewise: with one part they are the result, with
// more they are the input of nearest_merge. A list of fewer than k vectors ends with the distance NaN at
// the place 0xffffffff. k is at most MAX_K, a power of two (128 unless defined).
//
// One group per part and query. Groups side by side read the same part for different queries, so that all but
// one of them find it in the cache. LANES items read 16 bytes each of one vector, so that a step of a group
// reads whole cache lines, and each item has LANES vectors in flight. Then each item adds the LANES sums of one vector.
// Those below the k-th best distance so far are collected in local memory and ranked when there
// are more than MAX_K of them: seldom, as the more vectors have been seen, the fewer of them are that near.
#include "elem.h"
#include "order.h"
#include "unit.h"

#ifndef METRIC
#define METRIC l2
#endif
#define is_l2_l2 1
#define is_ip_ip 1
#define is_cosine_cosine 1
#define L2 JOIN(is_l2_, METRIC)
#define COSINE JOIN(is_cosine_, METRIC)

#ifndef MAX_K
#define MAX_K 128
#endif

#define MISSING 0xffffffffu

// NUMBER is the type of a component and SUM that of a sum; a sum of UNIT products of bytes fits in an int.
#if FLOATING
#define NUMBER float
#define SUM float
#define ADD_PRODUCT(x, y, sum) MAD(x, y, sum)
#else
#define NUMBER int
#define SUM long
#define ADD_PRODUCT(x, y, sum) ((x) * (y) + (sum))
#endif

// Adds a component to the sum of a vector and, for cosine, to the sum of its squares.
#if L2
#define ADD(q, v, sum, square)                                                                     \
  {                                                                                                \
    NUMBER far = (q) - (v);                                                                        \
    sum = ADD_PRODUCT(far, far, sum);                                                              \
  }
#elif COSINE
#define ADD(q, v, sum, square)                                                                     \
  {                                                                                                \
    sum = ADD_PRODUCT(q, v, sum);                                                                  \
    square = ADD_PRODUCT(v, v, square);                                                            \
  }
#else
#define ADD(q, v, sum, square) sum = ADD_PRODUCT(q, v, sum);
#endif

#if COSINE
// The distance where that of cosine_distance would be lost, of any components: they are divided by the largest ones. Above a cosine of a half
// it is computed from the difference of the directions.
float precise_cosine(global const TYPE *q, global const TYPE *v, uint dim) {
  float most = 0, other = 0, a = 0, b = 0, product = 0, far = 0;
  for (size_t d = 0; d < dim; d++) {
    float x = fabs((float)LOAD(q, d)), y = fabs((float)LOAD(v, d));
    most = x > most || isnan(x) ? x : most; // a NaN stays
    other = y > other || isnan(y) ? y : other;
  }
  if (most == 0 || other == 0)
    return 1;
  for (size_t d = 0; d < dim; d++) {
    float x = (float)LOAD(q, d) / most, y = (float)LOAD(v, d) / other;
    a += x * x;
    b += y * y;
    product += x * y;
  }
  a = sqrt(a);
  b = sqrt(b);
  float cosine = product / a / b;
  if (!(cosine > 0.5f))
    return 1 - (cosine < -1 ? -1 : cosine);
  for (size_t d = 0; d < dim; d++) {
    float x = (float)LOAD(q, d) / most / a - (float)LOAD(v, d) / other / b;
    far += x * x;
  }
  return far / 2;
}

bool usual_length(float x) { return x >= 0x1p-40f && x <= 0x1p60f; }

// 1 - cosine; UNKNOWN if it has lost too many of its digits, or a square was out of the range of float. The caller
// computes precise_cosine then: in this function it costs registers which compilers for GPUs do not have.
#define UNKNOWN -1
float cosine_distance(float product, float square, float other) {
  float a = sqrt(square), b = sqrt(other), x = product / a / b;
  if (!usual_length(a) || !usual_length(b) || x > 1 - 0x1p-10f)
    return UNKNOWN;
  return 1 - (x < -1 ? -1 : x);
}
#endif

bool before(uint key, uint place, uint other, uint at) {
  return key < other || (key == other && place < at);
}

// The number that has a key.
float number_of(uint key) {
  return key == 0xffffffffu ? as_float(0x7fc00000u) : as_float(key >> 31 ? key ^ 0x80000000u : ~key);
}

// The candidates of a group: the first `sorted` are the best ones so far, in order; those up
// to `taken` follow in any order. There is memory for more of them after MAX_K.
#define CANDIDATES(more)                                                                           \
  local uint keys[MAX_K + (more)], from[MAX_K + (more)];                                           \
  local uint taken;                                                                                \
  uint sorted = 0;                                                                                 \
  if (l == 0)                                                                                      \
    taken = 0;

// Adds a candidate if it comes before the k-th best. An item may have none.
#define OFFER(there, key, place)                                                                   \
  if ((there) && (sorted < k || before(key, place, keys[k - 1], from[k - 1]))) {                   \
    uint to = atomic_inc(&taken);                                                                  \
    keys[to] = key;                                                                                \
    from[to] = place;                                                                              \
  }

// Ranks the candidates if there are more than MAX_K, if none is ranked yet, or at the end, and keeps the k
// best. Between two barriers they are in the items' registers, so that they need no second place in local memory,
// of which some devices have 32 KiB. The items that call OFFER next have to pass a barrier before.
#define EACH(more) ((MAX_K + (more) + GROUP - 1) / GROUP)
#define KEEP_BEST(more, end)                                                                       \
  barrier(CLK_LOCAL_MEM_FENCE);                                                                    \
  uint have = taken;                                                                               \
  if (have > MAX_K || sorted == 0 || (end)) {                                                      \
    uint some[EACH(more)], some_from[EACH(more)], ranks[EACH(more)];                               \
    for (uint e = 0; e < EACH(more); e++) {                                                        \
      uint i = e * GROUP + l;                                                                      \
      ranks[e] = MISSING;                                                                          \
      if (i >= have)                                                                               \
        continue;                                                                                  \
      uint key = keys[i], place = from[i], rank = i, low = 0, high = sorted;                       \
      if (i >= sorted) { /* the ranked ones that come first */                                     \
        while (low < high) {                                                                       \
          uint middle = (low + high) / 2;                                                          \
          if (before(key, place, keys[middle], from[middle]))                                      \
            high = middle;                                                                         \
          else                                                                                     \
            low = middle + 1;                                                                      \
        }                                                                                          \
        rank = low;                                                                                \
      }                                                                                            \
      for (uint j = sorted; j < have; j++) {                                                       \
        uint other = keys[j], at = from[j];                                                        \
        if (before(other, at, key, place) || (other == key && at == place && j < i))               \
          rank++;                                                                                  \
      }                                                                                            \
      some[e] = key;                                                                               \
      some_from[e] = place;                                                                        \
      ranks[e] = rank;                                                                             \
    }                                                                                              \
    barrier(CLK_LOCAL_MEM_FENCE);                                                                  \
    for (uint e = 0; e < EACH(more); e++)                                                          \
      if (ranks[e] < k) {                                                                          \
        keys[ranks[e]] = some[e];                                                                  \
        from[ranks[e]] = some_from[e];                                                             \
      }                                                                                            \
    sorted = min(have, k);                                                                         \
    if (l == 0)                                                                                    \
      taken = sorted;                                                                              \
  }

#define WRITE_BEST(distances, places, first)                                                       \
  barrier(CLK_LOCAL_MEM_FENCE);                                                                    \
  for (uint i = l; i < k; i += GROUP) {                                                            \
    (distances)[(first) + i] = i < sorted ? number_of(keys[i]) : as_float(0x7fc00000u);            \
    (places)[(first) + i] = i < sorted ? from[i] : MISSING;                                        \
  }

ROW_KERNEL void nearest(global const TYPE *queries, global const TYPE *vectors, global float *distances,
                        global uint *places, uint nQueries, uint nVectors, uint dim, uint k, uint parts) {
  local SUM sums[GROUP][LANES + 1]; // sums[i][j] = sum of lane j for vector i of a step
#if COSINE
  local SUM norm[GROUP];
#endif
  uint l = get_local_id(0);
  CANDIDATES(GROUP)
  uint part = nQueries ? (uint)min(get_group_id(0) / nQueries, (size_t)parts) : parts, q = get_group_id(0) % max(nQueries, 1u);
  if (part >= parts || k > MAX_K) // no return here, for the reason given in group.h
    nVectors = dim = k = 0;
  size_t each = ((size_t)nVectors + max(parts, 1u) - 1) / max(parts, 1u);
  uint first = (uint)min(part * each, (size_t)nVectors), end = (uint)min(first + each, (size_t)nVectors);
  queries += (size_t)q * dim;
#if COSINE
  SUM own = 0;
  for (size_t d = l; d < dim; d += GROUP) {
    NUMBER x = LOAD(queries, d);
    own = ADD_PRODUCT(x, x, own);
  }
  GROUP_TREE(norm, l, own, PLUS)
#endif

  bool aligned = dim % UNIT == 0 && ALIGNED(queries) && ALIGNED(vectors);
  uint lane = l % LANES, row = l / LANES;
  for (uint v0 = first; v0 < end; v0 = end - v0 > GROUP ? v0 + GROUP : end) {
    SUM s[LANES], t[LANES];
    for (uint b = 0; b < LANES; b++)
      s[b] = t[b] = 0;
    // An item's vectors are v0 + row + b·ROWS. After `steps` steps it stays at its last one, whose sums are not used
    // again. One address that moves takes fewer registers than LANES addresses.
    uint last = end - 1 - v0, steps = row > last ? 0 : (last - row) / ROWS;
    size_t step = (size_t)ROWS * dim;
    global const TYPE *begin = vectors + (size_t)(v0 + min(row, last)) * dim;
    if (aligned)
      for (size_t d = lane * UNIT; d < dim; d += LANES * UNIT) {
        uint4 w[LANES], y = READ_UNIT(queries + d);
        global const TYPE *v = begin + d;
#pragma unroll
        for (uint b = 0; b < LANES; v += b++ < steps ? step : 0)
          w[b] = READ_UNIT(v);
        NUMBER x[UNIT];
        UNPACK(y, x);
#pragma unroll
        for (uint b = 0; b < LANES; b++) {
          NUMBER z[UNIT], some = 0, more = 0;
          UNPACK(w[b], z);
#pragma unroll
          for (uint u = 0; u < UNIT; u++)
            ADD(x[u], z[u], some, more)
          s[b] += some;
          t[b] += more;
        }
      }
    else
#pragma unroll 1
      for (size_t d = lane; d < dim; d += LANES) {
        NUMBER x = LOAD(queries, d);
        global const TYPE *v = begin + d;
#pragma unroll
        for (uint b = 0; b < LANES; v += b++ < steps ? step : 0) {
          NUMBER z = LOAD(v, 0), some = 0, more = 0;
          ADD(x, z, some, more)
          s[b] += some;
          t[b] += more;
        }
      }
#pragma unroll
    for (uint b = 0; b < LANES; b++)
      sums[b * ROWS + row][lane] = s[b];
    barrier(CLK_LOCAL_MEM_FENCE);

    SUM sum = 0;
    for (uint j = 0; j < LANES; j++)
      sum += sums[l][j];
#if COSINE
    barrier(CLK_LOCAL_MEM_FENCE); // the sums of squares take the place of those of products
#pragma unroll
    for (uint b = 0; b < LANES; b++)
      sums[b * ROWS + row][lane] = t[b];
    barrier(CLK_LOCAL_MEM_FENCE);
    SUM square = 0;
    for (uint j = 0; j < LANES; j++)
      square += sums[l][j];
    float distance = l <= last ? cosine_distance((float)sum, (float)square, (float)norm[0]) : 0;
    if (distance == UNKNOWN)
      distance = precise_cosine(queries, vectors + (size_t)(v0 + l) * dim, dim);
#elif L2
    float distance = (float)sum;
#else
    float distance = 0 - (float)sum;
#endif
    uint key = key_of_float(distance);
    OFFER(l <= last, key, v0 + l)
    KEEP_BEST(GROUP, last < GROUP)
  }
  WRITE_BEST(distances, places, ((size_t)q * parts + part) * k)
}

// For each of rows, the k nearest of lists·k candidates, in order. Candidates may be in any order,
// and those at the place 0xffffffff do not count. lists·k is less than 2^32. It begins with the first candidates of all lists,
// which are the best ones if the lists are in order, so that few of the others are collected.
#define AHEAD 4

ROW_KERNEL void nearest_merge(global const float *distances, global const uint *places, global float *out,
                              global uint *outPlaces, uint rows, uint lists, uint k) {
  size_t r = get_group_id(0);
  uint l = get_local_id(0);
  CANDIDATES(AHEAD *GROUP)
  if (r >= rows || k > MAX_K)
    k = 0;
  uint n = lists * k, step = GROUP;
  for (uint i0 = 0; i0 < n; i0 += step, step = min((uint)(AHEAD * GROUP), n - i0)) {
    uint at[AHEAD], key[AHEAD];
#pragma unroll
    for (uint e = 0; e < AHEAD; e++) {
      uint i = e * GROUP + l;
      at[e] = MISSING;
      key[e] = 0;
      if (i < step && i < n - i0) {
        size_t from_list = r * n + (size_t)((i0 + i) % lists) * k + (i0 + i) / lists;
        at[e] = places[from_list];
        key[e] = key_of_float(distances[from_list]);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (uint e = 0; e < AHEAD; e++) {
      OFFER(at[e] != MISSING, key[e], at[e])
    }
    KEEP_BEST(AHEAD *GROUP, step >= n - i0)
  }
  WRITE_BEST(out, outPlaces, r * k)
}
