// A heap with the largest element on top, for topk.h. Keys have the order of the numbers, with both
// zeros equal and NaN last; of equal elements the one with the smaller index comes first.
typedef struct {
  uint64_t key;
  int64_t at;
} topk_one;

IN int topk_before(const topk_one *a, const topk_one *b) { return a->key < b->key || (a->key == b->key && a->at < b->at); }

IN uint64_t f64_key(double x) {
  uint64_t u;
  if (x != x)
    return ~0ull;
  x += 0.0; // -0 becomes 0
  memcpy(&u, &x, 8);
  return u >> 63 ? ~u : u | 1ull << 63;
}
IN uint64_t f32_key(float x) { return f64_key((double)x); }

static void topk_down(topk_one *heap, int64_t n, int64_t i) {
  topk_one one = heap[i];
  for (int64_t child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && topk_before(&heap[child], &heap[child + 1]))
      child++;
    if (!topk_before(&one, &heap[child]))
      break;
    heap[i] = heap[child];
  }
  heap[i] = one;
}
