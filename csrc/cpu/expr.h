// The machine that runs block programs of kernels/expr. Registers are tiles of EXPR_TILE numbers, an instruction is
// one loop over a tile. Whole tiles are computed even if fewer elements are needed: loops of a known length need no
// code for a rest, and no operation on numbers can fail. Functions of the C library, which compute some functions of doubles slowly, are called only
// for the needed elements.
#include "expr_tile.h"
#include "expr_chain.h"

// The positions of operands, as words of a launch.
typedef struct {
  int64_t rank, operands;
  const simd_word *dims, *operand; // for each operand: its memory, its first element, rank steps
  char *dense;                     // whether all elements of each operand are adjacent, in their order
} expr_layout;

// The coordinates of an element of the launch.
typedef struct {
  int64_t at[EXPR_RANK];
} expr_place;

static void expr_find(const expr_layout *l, int64_t lo, expr_place *p) {
  for (int64_t j = l->rank - 1; j > 0; j--) {
    p->at[j] = lo % l->dims[j].i;
    lo /= l->dims[j].i;
  }
  p->at[0] = lo;
}

// Elements in reverse order are moved by vector instructions. They are read upwards, and those of a later tile are fetched meanwhile, since the
// processor by itself fetches little for several operands that are read downwards.
#define MOVE(E)                                                                                    \
  if (step == -1)                                                                                  \
    for (int64_t part = 0, end; part < n; part = end) {                                            \
      end = n - part < EXPR_PART ? n : part + EXPR_PART;                                           \
      for (int64_t at = part * size; at < end * size; at += 64)                                    \
        __builtin_prefetch(next + at, 0, 2);                                                       \
      if (out)                                                                                     \
        for (int64_t i = part; i < end; i++)                                                       \
          ((E *)p)[i + 1 - n] = ((E *)tile)[n - 1 - i];                                            \
      else                                                                                         \
        for (int64_t i = part; i < end; i++)                                                       \
          ((E *)tile)[n - 1 - i] = ((E *)p)[i + 1 - n];                                            \
    }                                                                                              \
  else if (out)                                                                                    \
    for (int64_t i = 0; i < n; i++)                                                                \
      ((E *)p)[i * step] = ((E *)tile)[i];                                                         \
  else if (step == 0)                                                                              \
    for (int64_t i = 0, x = *(E *)p; i < n; i++)                                                   \
      ((E *)tile)[i] = (E)x;                                                                       \
  else                                                                                             \
    for (int64_t i = 0; i < n; i++)                                                                \
      ((E *)tile)[i] = ((E *)p)[i * step];                                                         \
  break;

// expr_move gathers n elements of an operand into a tile, or scatters them.
TILES static void expr_move(const expr_layout *l, int64_t slot, int64_t size, expr_place place, int64_t count, char *tile, int out) {
  const simd_word *o = l->operand + slot * (2 + l->rank);
  int64_t last = l->rank - 1, step = o[2 + last].i;
  while (count > 0) {
    int64_t n = l->dims[last].i - place.at[last];
    char *p = o[0].p;
    n = n < count ? n : count;
    for (int64_t j = 0; j <= last; j++)
      p += place.at[j] * o[2 + j].i * size;
    p += o[1].i * size;
    const char *next = p - n * size; // the first element of the next tile of elements in reverse order: in this row, or in the one after it
    if (last > 0 && place.at[last] + n == l->dims[last].i)
      next = p + (place.at[last] + o[1 + last].i) * size;
    next -= (n - 1) * size;
    if (step == 1)
      memcpy(out ? p : tile, out ? tile : p, (size_t)(n * size));
    else
      switch (size) {
      case 1:
        MOVE(uint8_t)
      case 2:
        MOVE(uint16_t)
      case 4:
        MOVE(uint32_t)
      default:
        MOVE(uint64_t)
      }
    tile += n * size, count -= n;
    place.at[last] = 0;
    for (int64_t j = last - 1; j >= 0; j--) {
      if (++place.at[j] < l->dims[j].i || j == 0)
        break;
      place.at[j] = 0;
    }
  }
}
#undef MOVE
#undef TILES

// expr_at returns the address of an element of an operand.
static char *expr_at(const expr_layout *l, int64_t slot, int64_t size, const expr_place *place) {
  const simd_word *o = l->operand + slot * (2 + l->rank);
  char *p = (char *)o[0].p + o[1].i * size;
  for (int64_t j = 0; j < l->rank; j++)
    p += place->at[j] * o[2 + j].i * size;
  return p;
}

// Whether all of n elements from a place on are the same element of the operand.
static int expr_repeats(const expr_layout *l, int64_t slot, const expr_place *place, int64_t n) {
  int64_t last = l->rank - 1;
  return l->operand[slot * (2 + l->rank) + 2 + last].i == 0 && l->dims[last].i - place->at[last] >= n;
}

// expr_bits returns the bits of an element.
static uint64_t expr_bits(const void *p, int64_t size) {
  switch (size) {
  case 1:
    return *(const uint8_t *)p;
  case 2:
    return *(const uint16_t *)p;
  case 4:
    return *(const uint32_t *)p;
  default:
    return *(const uint64_t *)p;
  }
}

// expr_side returns the address of n elements of an operand if they are adjacent in memory, and otherwise NULL. lo is the number of the element at
// the place.
static char *expr_side(const expr_layout *l, int64_t slot, int64_t size, const expr_place *place, int64_t lo, int64_t n) {
  const simd_word *o = l->operand + slot * (2 + l->rank);
  int64_t last = l->rank - 1;
  if (l->dense[slot])
    return (char *)o[0].p + (o[1].i + lo) * size;
  if (o[2 + last].i != 1 || l->dims[last].i - place->at[last] < n)
    return NULL;
  return expr_at(l, slot, size, place);
}

// expr_tile_of is expr_side for instructions that compute whole tiles: it is NULL for fewer elements.
static char *expr_tile_of(const expr_layout *l, int64_t slot, int64_t size, const expr_place *place, int64_t lo, int64_t n) {
  return n < EXPR_TILE ? NULL : expr_side(l, slot, size, place, lo, n);
}

// expr_down returns the bytes from an element of an operand to the one below it, in the next row.
static int64_t expr_down(const expr_layout *l, int64_t slot, int64_t size) {
  return l->rank < 2 ? 0 : l->operand[slot * (2 + l->rank) + l->rank].i * size;
}

static int expr_dense(const expr_layout *l, int64_t slot) {
  const simd_word *o = l->operand + slot * (2 + l->rank);
  int64_t step = 1;
  for (int64_t j = l->rank - 1; j >= 0; step *= l->dims[j--].i)
    if (o[2 + j].i != step)
      return 0;
  return 1;
}

typedef struct {
  int64_t code, type, to, dst, a, b, c, elem;
  simd_word bits, low, top;
  int64_t copied;  // of a load: whether the register must not be the operand's memory
  int16_t fetches[EXPR_FETCHES]; // one more than the numbers of the loads whose later tiles this instruction fetches, then 0
  int64_t links;   // of the first instruction of a chain: how many instructions the chain has
} expr_instruction;

static void expr_decode(const simd_word *w, expr_instruction *in) {
  uint64_t x = (uint64_t)w[0].i;
  in->code = x & 255, in->type = x >> 8 & 255, in->to = x >> 16 & 255, in->dst = x >> 24 & 255;
  in->a = x >> 32 & 255, in->b = x >> 40 & 255, in->c = x >> 48 & 255, in->elem = (int64_t)(x >> 56);
  in->bits = w[1], in->low = w[2], in->top = w[3];
  in->copied = 0, in->links = 0;
  memset(in->fetches, 0, sizeof in->fetches);
}

// expr_reads returns what an instruction fetches of later tiles of the loads, which ahead has.
static expr_ahead expr_reads(const expr_instruction *in, const expr_next *ahead) {
  expr_ahead next = {.write = NULL};
  for (int64_t k = 0, found = 0; k < EXPR_FETCHES && in->fetches[k]; k++)
    if (ahead[in->fetches[k] - 1].at)
      next.read[found++] = ahead[in->fetches[k] - 1];
  return next;
}

// Whether a load or store needs no conversion.
IN int expr_as_is(const expr_instruction *in) {
  return type_size[in->elem] == class_size(in->code == EXPR_LOAD ? in->to : in->type);
}

// Whether the elements of a load are floats of 16 bits until a chain widens them, which takes numbers that are the same in a tile as floats.
IN int expr_short(const expr_instruction *in) { return in->to == CLASS_F16 || in->to == CLASS_BF16; }

// Whether an instruction can be part of a chain.
static int expr_chains(const expr_instruction *in) {
  switch (in->code) {
  case EXPR_ADD:
  case EXPR_SUB:
  case EXPR_MUL:
  case EXPR_NEG:
  case EXPR_AND:
  case EXPR_OR:
  case EXPR_XOR:
    return 1;
  case EXPR_DIV:
  case EXPR_FMA:
  case EXPR_MIN:
  case EXPR_MAX:
  case EXPR_ABS:
  case EXPR_SQRT:
  case EXPR_RSQRT:
  case EXPR_EXP:
  case EXPR_SIGMOID:
  case EXPR_TANH:
  case EXPR_GELU:
    return in->type == CLASS_F32 || in->type == CLASS_F64 || in->type == CLASS_F16 || in->type == CLASS_BF16;
  }
  return 0;
}

typedef void expr_chain(const expr_strip *strips, int64_t count, const expr_next *ahead, int64_t n);
static expr_chain *const expr_chains_of[] = {
    [CLASS_F32] = f32_expr_chain, [CLASS_F64] = f64_expr_chain, [CLASS_I32] = u32_expr_chain,   [CLASS_I64] = u64_expr_chain, [CLASS_U32] = u32_expr_chain,
    [CLASS_U64] = u64_expr_chain, [CLASS_F16] = f16_expr_chain, [CLASS_BF16] = bf16_expr_chain, [CLASS_U8] = u8_expr_chain,   [CLASS_U16] = u16_expr_chain,
};

// How many operations a chain has at most, or several together; how many chains and stores are computed together, and for how many operands they fetch.
enum { EXPR_LINKS = 128, EXPR_STRIPS = 32, EXPR_STREAMS = 15 };

// Whether a code of chains has at least two operands.
static int expr_two(int64_t code) {
  return code == EXPR_FMA || code == EXPR_ADD || code == EXPR_SUB || code == EXPR_MUL || code == EXPR_DIV || code == EXPR_MIN ||
         code == EXPR_MAX || code == EXPR_AND || code == EXPR_OR || code == EXPR_XOR;
}

// A repeated element of an operand, in eight vectors, and the bytes to that of the next row.
typedef struct {
  char *to;
  const char *from;
  int64_t size, down;
} expr_refill;

// expr_link_up returns the strip of the chain that begins with in, and makes its links. Registers that are constant have the same eight
// vectors for all elements of a row, and down has the bytes to those of the next row.
static expr_strip expr_link_up(const expr_instruction *in, expr_link *links, char *const *reg, const char *constant, const int64_t *down) {
  // A chain begins with an operand that is not constant, if there is one, so that a loop for one operation can read it.
  int swapped = expr_two(in->code) && constant[in->a] && !constant[in->b];
  int64_t first = swapped ? in->b : in->a;
  for (int64_t k = 0; k < in->links; k++) {
    const expr_instruction *x = in + k;
    int second = k > 0 ? x->a != x[-1].dst : swapped;
    if (x->code == EXPR_FMA) { // the result of the one before is a factor, or what is added
      int sum = k > 0 && second && x->b != x[-1].dst;
      int64_t other = second ? x->a : x->b, third = sum ? x->b : x->c;
      links[k] = (expr_link){.code = EXPR_FMA | (sum ? CHAIN_SECOND : 0), .other = reg[other], .advance = constant[other] ? 0 : -1, .down = down[other],
                             .third = reg[third], .third_advance = constant[third] ? 0 : -1, .third_down = down[third]};
      continue;
    }
    int64_t other = second ? x->a : x->b, ordered = x->code == EXPR_SUB || x->code == EXPR_DIV || x->code == EXPR_MIN || x->code == EXPR_MAX;
    int64_t code = k > 0 && x->code == EXPR_MUL && x->a == x->b ? CHAIN_SQUARE : x->code | (second && ordered ? CHAIN_SECOND : 0);
    links[k] = (expr_link){.code = code, .other = reg[other], .advance = constant[other] ? 0 : -1, .down = down[other]};
  }
  return (expr_strip){.from = reg[first], .advance = constant[first] ? 0 : -1, .from_down = down[first], .links = links, .count = in->links};
}

// expr_output makes a strip write n elements to the output of a store, past the caches if that is wanted and every row begins with a line of them.
static void expr_output(const expr_layout *l, const expr_instruction *store, const expr_place *place, int64_t lo, int64_t n, int64_t past, expr_strip *s) {
  int64_t size = type_size[store->elem], slot = store->bits.i;
  s->to = expr_side(l, slot, size, place, lo, n), s->to_down = expr_down(l, slot, size), s->step = -1;
  s->past = past && (((int64_t)(uintptr_t)s->to | s->to_down) & 63) == 0;
}

// expr_send copies whole lines past the caches.
IN void expr_send(char *to, const char *from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64)
    past_line(to + i, from + i);
}

// expr_cast converts a piece.
static void expr_cast(const expr_instruction *in, void *d, const void *a) {
  switch (in->type) {
  case CLASS_F32:
    f32_expr_cast(in->to, d, a, in->low.i, (uint64_t)in->top.i);
    return;
  case CLASS_F64:
    f64_expr_cast(in->to, d, a, in->low.i, (uint64_t)in->top.i);
    return;
  case CLASS_I32:
    i32_expr_cast(in->to, d, a, (int32_t)in->low.i, (int32_t)in->top.i);
    return;
  case CLASS_I64:
    i64_expr_cast(in->to, d, a, in->low.i, in->top.i);
    return;
  case CLASS_U32:
    u32_expr_cast(in->to, d, a, (uint32_t)in->low.i, (uint32_t)in->top.i);
    return;
  default:
    u64_expr_cast(in->to, d, a, (uint64_t)in->low.i, (uint64_t)in->top.i);
  }
}

static void expr_compute(const expr_instruction *in, void *d, char *const *reg, int64_t lo, int64_t n, const expr_ahead *ahead) {
  const void *a = reg[in->a], *b = reg[in->b], *c = reg[in->c];
  switch (in->code) {
  case EXPR_INDEX:
    for (int64_t i = 0; i < EXPR_TILE; i++)
      ((int64_t *)d)[i] = lo + i;
    return;
  case EXPR_BITS:
    expr_random(d, a, (uint64_t)lo, (uint64_t)in->bits.i);
    return;
  case EXPR_WRAP:
    expr_wrap(in->elem, d, a);
    return;
  case EXPR_ODD:
    expr_odd(in->type, d, a);
    return;
  case EXPR_SELECT:
    expr_select(class_size(in->to), d, a, b, c);
    return;
  case EXPR_CAST:
    for (int64_t i = 0; i < n; i += EXPR_PIECE) {
      for (int64_t part = i; part < i + EXPR_PIECE; part += EXPR_PART)
        expr_fetch(ahead, part, class_size(in->to));
      expr_cast(in, (char *)d + i * class_size(in->to), (const char *)a + i * class_size(in->type));
    }
    return;
  }
  switch (in->type) {
  case CLASS_F32:
    f32_expr(in->code, d, a, b, n, ahead);
    return;
  case CLASS_F64:
    f64_expr(in->code, d, a, b, n, ahead);
    return;
  case CLASS_I32:
    i32_expr(in->code, d, a, b, (uint32_t)in->bits.i, ahead);
    return;
  case CLASS_I64:
    i64_expr(in->code, d, a, b, (uint64_t)in->bits.i, ahead);
    return;
  case CLASS_U32:
    u32_expr(in->code, d, a, b, (uint32_t)in->bits.i, ahead);
    return;
  default:
    u64_expr(in->code, d, a, b, (uint64_t)in->bits.i, ahead);
  }
}

// expr_converts returns the cast of a program that only loads elements, casts them and stores them, the load of one that only loads and
// stores them in another form, and otherwise NULL.
static const expr_instruction *expr_converts(const expr_instruction *load, const expr_instruction *end) {
  const expr_instruction *store = end - 1, *cast = end - load == 3 && load[1].code == EXPR_CAST && load[1].a == load->dst ? load + 1 : load;
  int linear = (end - load == 2 || cast != load) && load->code == EXPR_LOAD && store->code == EXPR_STORE && store->a == cast->dst;
  return linear && (cast != load || !expr_as_is(load) || !expr_as_is(store)) ? cast : NULL;
}

// expr_convert runs such a program over adjacent elements, whole pieces of them.
static void expr_convert(const expr_instruction *load, const expr_instruction *cast, const expr_instruction *store, const char *from, char *to,
                         int64_t n, int past) {
  int64_t read = type_size[load->elem], write = type_size[store->elem];
  int widens = !expr_as_is(load), narrows = !expr_as_is(store);
  _Alignas(64) char room[3][EXPR_PIECE * 8];
  for (int64_t i = 0; i < n; i += EXPR_PIECE, from += EXPR_PIECE * read, to += EXPR_PIECE * write) {
    char *last = past ? room[2] : to;
    const void *x = from;
    if (widens)
      x = cast == load && !narrows ? last : room[0], expr_widen(load->elem, (void *)x, from);
    if (cast != load) {
      void *d = narrows ? room[1] : last;
      expr_cast(cast, d, x);
      x = d;
    }
    if (narrows)
      expr_narrow(store->elem, last, x);
    if (past)
      expr_send(to, last, EXPR_PIECE * write);
  }
}

// The memory of a program: a tile for each register and one for elements as they are stored, the instructions, and
// what they fetch. Small programs have it on the stack.
#define EXPR_BYTES(registers, count)                                                               \
  (((registers) + 1) * EXPR_STEP + (count) * (int64_t)(sizeof(expr_instruction) + sizeof(expr_next)))

_Static_assert(sizeof(expr_instruction) + sizeof(expr_next) <= 192, "cpu/simd_expr.go counts so many bytes");

// Words: first element, last element plus one, number of instructions, number of those that run once, registers, rank,
// operands, 1 if the results are larger than the caches, EXPR_BYTES of memory or NULL; the choices: bytes of all operands, as if all elements had 8,
// above which several chains fetch ahead, by how many bytes they do, by how many tiles other operations do, for how many operands each of these does, at
// most EXPR_FETCHES, and how many tiles chains compute at a time; rank lengths; for each operand its memory, its first element and rank steps; four
// words for each instruction, see expr_decode, of which the second is also the operand of a load or store.
EXPORT(expr) {
  int64_t count = w[2].i, once = w[3].i, registers = w[4].i;
  expr_layout l = {.rank = w[5].i, .operands = w[6].i, .dims = w + 14, .operand = w + 14 + w[5].i};
  int64_t distance = w[10].i, next_tile = EXPR_TILE * w[11].i, fetches = w[12].i;
  char dense[EXPR_REGISTERS];
  const simd_word *code = l.operand + l.operands * (2 + l.rank);
  _Alignas(64) char own[w[8].p ? 64 : EXPR_BYTES(registers, count)];
  char *tiles = w[8].p ? w[8].p : own;
  char *home[EXPR_REGISTERS], *reg[EXPR_REGISTERS], *raw = tiles + registers * EXPR_STEP;
  expr_instruction *list = (expr_instruction *)(raw + EXPR_STEP), *end = list + count;
  expr_next *ahead = (expr_next *)end;
  int64_t stores = 0;
  expr_link links[EXPR_LINKS];
  expr_strip strips[EXPR_STRIPS];
  expr_next streams[EXPR_STREAMS + 1];
  int64_t below[EXPR_STREAMS]; // the bytes from the place where each is fetched to that of the next row
  expr_refill refills[EXPR_REGISTERS];
  int64_t down[EXPR_REGISTERS] = {0};
  char constant[EXPR_REGISTERS] = {0};
  l.dense = dense;
  for (int64_t slot = 0; slot < l.operands; slot++)
    dense[slot] = (char)expr_dense(&l, slot);
  for (int64_t r = 0; r < registers; r++)
    home[r] = reg[r] = tiles + r * EXPR_STEP;
  for (int64_t k = 0; k < count; k++)
    expr_decode(code + 4 * k, list + k), stores += list[k].code == EXPR_STORE;
  for (const expr_instruction *in = list; in < list + once; in++)
    expr_fill(class_size(in->to), reg[in->dst], (uint64_t)in->bits.i, EXPR_TILE), constant[in->dst] = 1;
  // A chain is a sequence of operations each of which alone uses the result of the one before it.
  for (expr_instruction *in = list + once, *to; in < end; in = to) {
    to = in + 1;
    if (!expr_chains(in))
      continue;
    while (to < end && to - in < EXPR_LINKS && to[-1].low.i && expr_chains(to) && expr_chains_of[to->type] == expr_chains_of[in->type])
      to++;
    in->links = to - in;
  }
  // The last operation writes its result directly to the output if the store after it needs no conversion, and if it is
  // a chain or the results fit in the caches.
  expr_instruction *last = end - 2, *direct = NULL;
  for (expr_instruction *in = list + once; in < end; in++)
    if (in->links && in + in->links == end - 1)
      last = in;
  int64_t result = count - once >= 2 ? end[-2].dst : -1;
  if (result == end[-1].a && (last->links || !w[7].i) && last->code != EXPR_LOAD && last->code != EXPR_STORE &&
      expr_as_is(end - 1) && class_size(last->to) == class_size(end[-1].type))
    direct = last;
  // A program that is loads, chains of one class, and stores of what they compute does many tiles at a time, and so does one that is a load and a store.
  int64_t most = EXPR_TILE * w[13].i, chains = 0, operations = 0;
  const expr_instruction *chain = NULL;
  char loaded[EXPR_REGISTERS] = {0};
  for (const expr_instruction *in = list + once; in < end; in++)
    if (in->links) {
      chain = chain ? chain : in;
      chains++, operations += in->links;
      in += in->links - 1;
      loaded[in->dst] = 0;
      if (expr_chains_of[in->type] != expr_chains_of[chain->type])
        most = 0;
    } else if (in->code == EXPR_LOAD) {
      int repeated = l.operand[in->bits.i * (2 + l.rank) + 1 + l.rank].i == 0;
      loaded[in->dst] = repeated ? 2 : 1;
      if (!expr_as_is(in) || (repeated && expr_short(in)))
        most = 0;
    } else if (in->code != EXPR_STORE || !expr_as_is(in) || constant[in->a] || (loaded[in->a] && (chains || stores > 1 || loaded[in->a] == 2)))
      most = 0;
  int64_t bytes = 8 * l.operands; // of the operands, as if all were of 8 bytes
  for (int64_t j = 0; j < l.rank; j++)
    bytes *= l.dims[j].i;
  int far = bytes > w[9].i; // they do not lie in the second-level cache
  if (operations > EXPR_LINKS || chains + stores > EXPR_STRIPS)
    most = 0;
  int64_t unit = chain ? 512 / class_size(chain->type) : EXPR_TILE; // numbers of eight registers, or of a multiple
  // An input that is stored as it is has to be copied, if an earlier store may overwrite it.
  for (int64_t j = count - stores, k; stores > 1 && j < count; j++) {
    for (k = count - stores - 1; k > once && list[k].dst != list[j].a;)
      k--;
    list[k].copied = list[k].code == EXPR_LOAD && list[k].dst == list[j].a;
  }
  // Operations outside of chains fetch later tiles of loads, in turn, as long as there are loads left.
  expr_instruction *fetcher = end;
  for (int64_t k = once, turn = -1; k < count; k++) {
    if (list[k].code != EXPR_LOAD)
      continue;
    do {
      if (fetcher == end)
        fetcher = list + once, turn++;
      else
        fetcher++;
    } while (turn < fetches && (fetcher == end || fetcher->code == EXPR_LOAD || fetcher->code == EXPR_STORE || expr_chains(fetcher)));
    if (turn == fetches)
      break;
    fetcher->fetches[turn] = (int16_t)(k + 1);
  }
  const expr_instruction *cast = expr_converts(list + once, end);
  expr_place place;
  for (int64_t lo = w[0].i, n; lo < w[1].i; lo += n) {
    n = w[1].i - lo;
    expr_find(&l, lo, &place);
    if (cast) {
      int64_t row = l.dims[l.rank - 1].i - place.at[l.rank - 1], load = list[once].bits.i, store = end[-1].bits.i;
      int64_t some = (n < row || (l.dense[load] && l.dense[store]) ? n : row) / EXPR_PIECE * EXPR_PIECE;
      const char *from = expr_side(&l, load, type_size[list[once].elem], &place, lo, some);
      char *to = expr_side(&l, store, type_size[end[-1].elem], &place, lo, some);
      if (some > 0 && from && to) {
        expr_convert(list + once, cast, end - 1, from, to, some, w[7].i && ((uintptr_t)to & 63) == 0);
        n = some;
        continue;
      }
      if (from && to && l.dims[l.rank - 1].i >= EXPR_PIECE) // the rest of a row
        n = n < row ? n : row;
    }
    // What is adjacent in memory is computed where it lies, in units, unless rows are short and have a rest; the rest of a longer row is a tile by itself.
    int64_t last = l.rank - 1, length = l.dims[last].i, whole = length - place.at[last], side = length >= EXPR_TILE || length % unit == 0 ? most : 0;
    side = side < whole ? side : whole;
    side = side < n ? side : n;
    for (int64_t slot = 0; slot < l.operands && side > 0; slot++) // of size 1, since only NULL matters
      if (!expr_side(&l, slot, 1, &place, lo, side) && !expr_repeats(&l, slot, &place, side))
        side = 0;
    if (side >= unit && chains) {
      n = side / unit * unit;
      int64_t rows = last > 0 && n == length ? (w[1].i - lo) / n : 1; // that are computed by the same strips, with other addresses
      if (rows > 1 && rows > l.dims[last - 1].i - place.at[last - 1])
        rows = l.dims[last - 1].i - place.at[last - 1];
      expr_link *link = links;
      expr_strip *strip = strips;
      expr_next *fetch = streams;
      expr_refill *refill = refills;
      for (const expr_instruction *in = list + once; in < end; in++) {
        if (in->links) {
          const expr_instruction *store = NULL;
          for (const expr_instruction *x = end - 1; in + in->links == end - stores && x >= end - stores; x--) // the last chain writes directly to an output
            store = x->a == in[in->links - 1].dst ? x : store;
          *strip = expr_link_up(in, link, reg, constant, down);
          link += in->links, in += in->links - 1;
          strip->to = home[in->dst], strip->step = 0, strip->to_down = 0;
          if (store)
            expr_output(&l, store, &place, lo, n, w[7].i, strip);
          reg[in->dst] = strip->to, constant[in->dst] = !store, down[in->dst] = strip->to_down;
          strip++;
        } else if (in->code == EXPR_LOAD) {
          int64_t size = type_size[in->elem], slot = in->bits.i;
          char *p = expr_side(&l, slot, size, &place, lo, n);
          constant[in->dst] = !p, down[in->dst] = p ? expr_down(&l, slot, size) : 0;
          if (!p) { // an element that is repeated, beside the place of a chain's result
            *refill = (expr_refill){.to = p = home[in->dst] + 512, .from = expr_at(&l, slot, size, &place), .size = size, .down = expr_down(&l, slot, size)};
            expr_fill(size, p, expr_bits(refill->from, size), 512 / size);
            refill += refill->down != 0;
          } else if (chains > 1 && far && fetch < streams + EXPR_STREAMS && (down[in->dst] != 0 || rows == 1)) {
            below[fetch - streams] = down[in->dst]; // one row for all stays in the caches
            *fetch++ = (expr_next){p + distance, size};
          }
          reg[in->dst] = p;
        } else {
          expr_strip copy = {.from = reg[in->a], .advance = constant[in->a] ? 0 : -1, .from_down = down[in->a]};
          expr_output(&l, in, &place, lo, n, w[7].i, &copy);
          if (copy.to != copy.from)
            *strip++ = copy;
        }
      }
      fetch->at = NULL;
      for (int64_t r = 0;;) {
        expr_chains_of[chain->type](strips, strip - strips, streams, n);
        if (++r == rows)
          break;
        for (expr_link *x = links; x < link; x++) {
          x->other += x->down;
          if (x->third)
            x->third += x->third_down;
        }
        for (expr_strip *x = strips; x < strip; x++)
          x->from += x->from_down, x->to += x->to_down;
        for (expr_next *x = streams; x < fetch; x++)
          x->at += below[x - streams];
        for (expr_refill *x = refills; x < refill; x++)
          expr_fill(x->size, x->to, expr_bits(x->from += x->down, x->size), 512 / x->size);
      }
      n *= rows;
      continue;
    }
    if (side > 0)
      n = side < unit ? side : side / unit * unit;
    else
      n = n < EXPR_TILE ? n : EXPR_TILE;
    for (const expr_instruction *in = list + once; in < end; in++) {
      int64_t size = type_size[in->elem], slot = in->bits.i;
      if (in->links) {
        const expr_instruction *to = in + in->links - 1;
        char *p = in == direct ? expr_tile_of(&l, end[-1].bits.i, class_size(in->to), &place, lo, n) : NULL;
        int64_t eight = 512 / class_size(in->type), padded = (n + eight - 1) / eight * eight; // numbers of eight registers, or of a multiple
        *strips = expr_link_up(in, links, reg, constant, down);
        strips->past = p && w[7].i && ((uintptr_t)p & 63) == 0;
        strips->to = p = p ? p : home[to->dst];
        strips->step = -1;
        expr_chains_of[in->type](strips, 1, &(expr_next){.at = NULL}, padded);
        reg[to->dst] = p, constant[to->dst] = 0;
        in = to;
      } else if (in->code == EXPR_LOAD) {
        char *p = expr_tile_of(&l, slot, size, &place, lo, n);
        int as_is = expr_as_is(in);
        ahead[in - list] = (expr_next){p ? p + next_tile * size : NULL, size};
        constant[in->dst] = 0;
        if (!p && expr_repeats(&l, slot, &place, n)) {
          p = as_is ? home[in->dst] : raw;
          expr_fill(size, p, expr_bits(expr_at(&l, slot, size, &place), size), EXPR_TILE);
        } else if (!p || in->copied) {
          p = as_is ? home[in->dst] : raw;
          expr_move(&l, slot, size, place, n, p, 0);
        }
        reg[in->dst] = as_is ? p : home[in->dst];
        if (!as_is)
          for (int64_t i = 0; i < n; i += EXPR_PIECE)
            expr_widen(in->elem, home[in->dst] + i * class_size(in->to), p + i * size);
      } else if (in->code == EXPR_STORE) {
        char *p = expr_tile_of(&l, slot, size, &place, lo, n), *from = reg[in->a];
        if (p == from)
          continue;
        int past = p && w[7].i && ((uintptr_t)p & 63) == 0;
        if (!expr_as_is(in)) {
          char *to = p && !past ? p : raw;
          for (int64_t i = 0; i < n; i += EXPR_PIECE)
            expr_narrow(in->elem, to + i * size, from + i * class_size(in->type));
          if (p == to)
            continue;
          from = raw;
        }
        if (!p)
          expr_move(&l, slot, size, place, n, from, 1);
        else if (past)
          expr_send(p, from, n * size);
        else
          memcpy(p, from, (size_t)(n * size));
      } else {
        char *p = in == direct ? expr_tile_of(&l, end[-1].bits.i, class_size(in->to), &place, lo, n) : NULL;
        expr_ahead next = expr_reads(in, ahead);
        next.write = p ? p + next_tile * class_size(in->to) : NULL;
        p = p ? p : home[in->dst];
        expr_compute(in, p, reg, lo, n, &next); // reg[in->dst] changes only now, since an operand may be in it
        reg[in->dst] = p;
      }
    }
  }
  past_end();
}
