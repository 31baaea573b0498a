// The k smallest elements of rows, for elements that are stored as S. A small k is selected among
// the elements below a limit that at least k elements do not exceed, by counting the elements that
// come before each. A larger k uses a heap. Both discard elements that are not below the largest
// candidate, a register at a time.
#define V CAT(A, v)
#define W CAT(A, W)
#define TOPK_FEW (4 * W)
#define TOPK_ROOM (3 * TOPK_FEW)

// topk_below returns a bit for each of 4W numbers, which is set if the number is less than `by`.
IN uint64_t CAT(S, topk_below)(const E *p, V by) {
  uint64_t a = CAT(A, lessbits)(CAT(S, load)(p), by), b = CAT(A, lessbits)(CAT(S, load)(p + W), by);
  uint64_t c = CAT(A, lessbits)(CAT(S, load)(p + 2 * W), by), d = CAT(A, lessbits)(CAT(S, load)(p + 3 * W), by);
  return a | b << W | c << 2 * W | d << 3 * W;
}

// topk_rank computes for each of n numbers how many come before it: smaller ones, and equal ones
// with a smaller index. No number is NaN, or +inf if n is not a multiple of W; there is memory for
// one register more.
IN void CAT(S, topk_rank)(F *x, int64_t n, int32_t *rank) {
  CAT(A, store)(x + n, CAT(A, set)((F)__builtin_inf()));
  for (int64_t i = 0; i < n; i++) {
    V by = CAT(A, set)(x[i]);
    int64_t own = i / W * W, q = 0;
    int before = 0;
    for (; q < own; q += W)
      before += __builtin_popcount(~CAT(A, lessbits)(by, CAT(A, load)(x + q)) & ((1u << W) - 1));
    unsigned equal = ~CAT(A, lessbits)(by, CAT(A, load)(x + q)) & ((1u << (i - own)) - 1);
    before += __builtin_popcount(CAT(A, lessbits)(CAT(A, load)(x + q), by) | equal);
    for (q += W; q < n; q += W)
      before += __builtin_popcount(CAT(A, lessbits)(CAT(A, load)(x + q), by));
    rank[i] = before;
  }
}

// Stores the minima of columns of n elements: four registers of minima, or the minima of those.
IN void CAT(S, topk_minima)(const E *row, int64_t n, int regs, F *to) {
  V m0 = CAT(A, set)((F)__builtin_inf()), m1 = m0, m2 = m0, m3 = m0;
  for (int64_t i = 0; i + 4 * W <= n; i += 4 * W) {
    m0 = CAT(A, min)(CAT(S, load)(row + i), m0), m1 = CAT(A, min)(CAT(S, load)(row + i + W), m1);
    m2 = CAT(A, min)(CAT(S, load)(row + i + 2 * W), m2), m3 = CAT(A, min)(CAT(S, load)(row + i + 3 * W), m3);
  }
  if (regs < 4)
    m0 = CAT(A, min)(m2, m0), m1 = CAT(A, min)(m3, m1);
  CAT(A, store)(to, regs < 2 ? CAT(A, min)(m1, m0) : m0), CAT(A, store)(to + W, m1);
  CAT(A, store)(to + 2 * W, m2), CAT(A, store)(to + 3 * W, m3);
}

// Returns a number that at least k elements of the row do not exceed; k is at most TOPK_FEW. It is
// the k-th smallest of the minima of twice as many parts of the beginning of the row, which has `first`
// times four registers. NaN if there is none.
static F CAT(S, topk_limit)(const E *row, int64_t n, int64_t k, int64_t first) {
  int regs = k <= W / 2 ? 1 : k <= W ? 2 : k <= 2 * W ? 4 : 8;
  int64_t part = n < first * 4 * W ? n : first * 4 * W;
  F minima[9 * W], limit = (F)__builtin_nan("");
  int32_t rank[8 * W], nan = 0;
  if (regs == 8)
    part /= 2, CAT(S, topk_minima)(row + part, part, 4, minima + 4 * W);
  if (part < 4 * W)
    return limit;
  CAT(S, topk_minima)(row, part, regs, minima);
  CAT(S, topk_rank)(minima, regs * W, rank);
  for (int c = 0; c < regs * W; c++) {
    nan |= minima[c] != minima[c];
    limit = rank[c] == k - 1 ? minima[c] : limit;
  }
  return !nan && limit - limit == 0 ? limit : (F)__builtin_nan("");
}

// Candidates: numbers of a row in its order, with their indices.
typedef struct {
  int64_t count;
  F value[TOPK_ROOM + W];
  uint32_t at[TOPK_ROOM];
  int32_t rank[TOPK_ROOM];
} CAT(S, topk_chosen);

// topk_best drops all candidates except the k smallest, and returns the largest of those.
static F CAT(S, topk_best)(CAT(S, topk_chosen) *c, int64_t k) {
  int64_t have = 0;
  F worst = 0;
  CAT(S, topk_rank)(c->value, c->count, c->rank);
  for (int64_t i = 0; i < c->count; i++)
    if (c->rank[i] < k) {
      worst = c->rank[i] == k - 1 ? c->value[i] : worst;
      c->value[have] = c->value[i], c->at[have++] = c->at[i];
    }
  c->count = have;
  return worst;
}

// topk_few finds the k smallest, k at most TOPK_FEW, and stores their indices in heap in order. It
// returns
// 0 if it cannot: if fewer than k numbers are finite, and for short rows.
static int CAT(S, topk_few)(const E *row, int64_t n, int64_t k, int64_t near, int64_t first, topk_one *heap) {
  CAT(S, topk_chosen) c;
  F limit = CAT(S, topk_limit)(row, n, k, first);
  if (limit != limit)
    return 0;
  limit += (limit < 0 ? -limit : limit) * (F)0x1p-22 + (F)0x1p-149; // a little more, since elements equal to it count
  c.count = 0;
  for (int64_t i = 0; i < n; i += 4 * W) {
    V by = CAT(A, set)(limit);
    uint64_t some = 0;
    if (i + 4 * W <= n)
      some = CAT(S, topk_below)(row + i, by);
    else
      for (int64_t q = 0; i + q < n; q++)
        some |= (uint64_t)(CAT(S, get)(row + i + q) < limit) << q;
    for (int64_t q = 0; q < 4 * W && n <= near; q += 64 / (int64_t)sizeof(E))
      __builtin_prefetch(row + n + i + q); // of the next row
    for (; some != 0; some &= some - 1) {
      int64_t at = i + __builtin_ctzll(some);
      F x = CAT(S, get)(row + at);
      if (!(x < limit))
        continue;
      c.value[c.count] = x, c.at[c.count++] = (uint32_t)at;
      if (c.count == TOPK_ROOM)
        limit = CAT(S, topk_best)(&c, k);
    }
  }
  CAT(S, topk_rank)(c.value, c.count, c.rank);
  for (int64_t i = 0; i < c.count; i++)
    if (c.rank[i] < k)
      heap[c.rank[i]].at = c.at[i];
  return 1;
}

// take replaces the top of a full heap by element `at` of the row if that comes before it. It
// returns the number at the new top.
static F CAT(S, take)(topk_one *heap, int64_t k, const E *row, int64_t at, F worst) {
  topk_one one = {CAT(A, key)(CAT(S, get)(row + at)), at};
  if (!topk_before(&one, &heap[0]))
    return worst;
  heap[0] = one;
  topk_down(heap, k, 0);
  return CAT(S, get)(row + heap[0].at);
}

static void CAT(S, topk_row)(const E *row, int64_t n, int64_t k, int64_t near, int64_t first, topk_one *heap) {
  int64_t i = 0;
  if (k <= TOPK_FEW && CAT(S, topk_few)(row, n, k, near, first, heap))
    return;
  for (; i < k; i++)
    heap[i] = (topk_one){CAT(A, key)(CAT(S, get)(row + i)), i};
  for (int64_t j = k / 2 - 1; j >= 0; j--)
    topk_down(heap, k, j);
  F worst = CAT(S, get)(row + heap[0].at);
  for (; i + 4 * W <= n && worst != worst; i++)
    worst = CAT(S, take)(heap, k, row, i, worst);
  for (; i + 4 * W <= n; i += 4 * W) {
    for (uint64_t some = CAT(S, topk_below)(row + i, CAT(A, set)(worst)); some != 0; some &= some - 1)
      worst = CAT(S, take)(heap, k, row, i + __builtin_ctzll(some), worst);
  }
  for (; i < n; i++)
    worst = CAT(S, take)(heap, k, row, i, worst);
  for (int64_t last = k - 1; last > 0; last--) { // in order
    topk_one top = heap[0];
    heap[0] = heap[last], heap[last] = top;
    topk_down(heap, last, 0);
  }
}

// Words from 1 on: rows, columns, k, in, values, indices, memory for k pairs of words, the bytes of a row up to which
// the next one is prefetched, and the length of its beginning in four registers. k is at least 1.
static void CAT(S, topk)(const simd_word *w) {
  int64_t n = w[2].i, k = w[3].i, most = k < n ? k : n, near = w[8].i / (int64_t)sizeof(E);
  topk_one *heap = w[7].p;
  for (int64_t i = 0; i < w[1].i; i++) {
    const E *row = (const E *)w[4].p + i * n;
    CAT(S, topk_row)(row, n, most, near, w[9].i, heap);
    for (int64_t j = 0; j < most; j++) {
      ((E *)w[5].p)[i * k + j] = row[heap[j].at];
      ((uint32_t *)w[6].p)[i * k + j] = (uint32_t)heap[j].at;
    }
  }
}
#undef V
#undef W
#undef TOPK_FEW
#undef TOPK_ROOM
