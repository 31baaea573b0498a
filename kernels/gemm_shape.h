// The tile that a group of ITEMS×ITEMS items of gemm and its like computes: SPAN×SPAN results, each
// item EACH×EACH of them, from DEPTH columns of A and rows of B at a time. And which matrices are
// stored transposed.
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
