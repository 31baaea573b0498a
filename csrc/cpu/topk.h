// The k smallest of rows, for elements stored as S: what is not below the worst that is
// kept is dropped a register at a time; the rest goes through a heap.
#define V CAT(A, v)
#define W CAT(A, W)

// take replaces the top of a full heap by x if that goes before it. The number of the
// new top comes back.
static F CAT(S, take)(topk_one *heap, int64_t k, const E *row, int64_t at, F worst) {
  topk_one one = {CAT(A, key)(CAT(S, get)(row + at)), at};
  if (!topk_before(&one, &heap[0]))
    return worst;
  heap[0] = one;
  topk_down(heap, k, 0);
  return CAT(S, get)(row + heap[0].at);
}

// A number that at least k elements of the row do not exceed: the k-th smallest of the
// minima of 4·W columns of its beginning. NaN where that gives none.
static F CAT(S, topk_limit)(const E *row, int64_t n, int64_t k) {
  enum { COLUMNS = 4 * W, ROWS = 64 };
  V m[4], inf = CAT(A, set)((F)__builtin_inf());
  F minima[COLUMNS], limit = (F)-__builtin_inf();
  if (k > COLUMNS / 2 || n < 4 * COLUMNS)
    return (F)__builtin_nan("");
  for (int q = 0; q < 4; q++)
    m[q] = inf;
  for (int64_t i = 0; i + COLUMNS <= n && i < ROWS * COLUMNS; i += COLUMNS)
    for (int q = 0; q < 4; q++)
      m[q] = CAT(A, min)(CAT(S, load)(row + i + q * W), m[q]);
  for (int q = 0; q < 4; q++)
    CAT(A, store)(minima + q * W, m[q]);
  for (int c = 0; c < COLUMNS; c++) {
    int below = 0;
    for (int q = 0; q < 4; q++)
      below += __builtin_popcount(CAT(A, lessbits)(m[q], CAT(A, set)(minima[c])));
    if (minima[c] != minima[c])
      return minima[c];
    if (below < k && minima[c] > limit)
      limit = minima[c];
  }
  return limit - limit == 0 ? limit : (F)__builtin_nan("");
}

// add puts an element into a heap that is not full; the number on top comes back when it is.
static F CAT(S, topk_add)(topk_one *heap, int64_t have, int64_t k, const E *row, int64_t at) {
  heap[have] = (topk_one){CAT(A, key)(CAT(S, get)(row + at)), at};
  if (have + 1 < k)
    return 0;
  for (int64_t i = k / 2 - 1; i >= 0; i--)
    topk_down(heap, k, i);
  return CAT(S, get)(row + heap[0].at);
}

static void CAT(S, topk_row)(const E *row, int64_t n, int64_t k, topk_one *heap) {
  int64_t have = 0, i = 0;
  F limit = CAT(S, topk_limit)(row, n, k), worst = 0;
  if (limit != limit)
    for (; have < k; have++, i++)
      worst = CAT(S, topk_add)(heap, have, k, row, i);
  for (; i + 4 * W <= n && worst != worst; i++)
    worst = CAT(S, take)(heap, k, row, i, worst);
  for (; i + 4 * W <= n; i += 4 * W) {
    V by = CAT(A, set)(have < k ? limit : worst), inf = CAT(A, set)((F)__builtin_inf());
    uint64_t some = 0;
    for (int q = 0; q < 4; q++) {
      V x = CAT(S, load)(row + i + q * W);
      // At most the limit, which is finite, and no NaN: there are k of them.
      unsigned bits = have < k ? ~CAT(A, lessbits)(by, x) & CAT(A, lessbits)(x, inf) : CAT(A, lessbits)(x, by);
      some |= (uint64_t)bits << q * W;
    }
    for (; some != 0; some &= some - 1) {
      int64_t at = i + __builtin_ctzll(some);
      if (have < k)
        worst = CAT(S, topk_add)(heap, have++, k, row, at);
      else
        worst = CAT(S, take)(heap, k, row, at, worst);
    }
  }
  for (; i < n; i++)
    if (have < k)
      worst = CAT(S, topk_add)(heap, have++, k, row, i);
    else
      worst = CAT(S, take)(heap, k, row, i, worst);
  for (int64_t last = k - 1; last > 0; last--) { // in order
    topk_one top = heap[0];
    heap[0] = heap[last], heap[last] = top;
    topk_down(heap, last, 0);
  }
}

// Words from 1 on: rows, columns, k, in, values, places, room for k pairs of words. k
// is 1 at least.
static void CAT(S, topk)(const simd_word *w) {
  int64_t n = w[2].i, k = w[3].i, most = k < n ? k : n;
  topk_one *heap = w[7].p;
  for (int64_t i = 0; i < w[1].i; i++) {
    const E *row = (const E *)w[4].p + i * n;
    CAT(S, topk_row)(row, n, most, heap);
    for (int64_t j = 0; j < most; j++) {
      ((E *)w[5].p)[i * k + j] = row[heap[j].at];
      ((uint32_t *)w[6].p)[i * k + j] = (uint32_t)heap[j].at;
    }
  }
}
#undef V
#undef W
