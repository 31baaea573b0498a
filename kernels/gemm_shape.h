// The tile that a group of ITEMS×ITEMS items computes in the matrix products: SPAN×SPAN results,
// EACH×EACH of them per item, from DEPTH columns of A and rows of B at a time; and the defaults of
// the definitions that say whether A and B are stored transposed.
#define ITEMS 8
#define EACH 8
#define SPAN 64
#define DEPTH 16

#ifndef TRANS_A
#define TRANS_A 0
#endif
#ifndef TRANS_B
#define TRANS_B 0
#endif
