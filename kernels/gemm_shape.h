// The tile that a group of ITEMS×ITEMS items computes in the matrix products: HIGH×SPAN results,
// EACH×WIDE of them per item, from DEPTH columns of A and rows of B at a time, whose rows in
// local memory are PAD elements apart; and the defaults of
// the definitions that say whether A and B are stored transposed. Definitions may choose other tiles where a family
// has them; see kernels.Chosen.
#ifndef ITEMS
#define ITEMS 8
#endif
#ifndef EACH
#define EACH 8
#endif
#ifndef WIDE
#define WIDE 8
#endif
#ifndef DEPTH
#define DEPTH 16
#endif
#ifndef PAD
#define PAD 4
#endif
#define HIGH (ITEMS * EACH)
#define SPAN (ITEMS * WIDE)

#ifndef TRANS_A
#define TRANS_A 0
#endif
#ifndef TRANS_B
#define TRANS_B 0
#endif
