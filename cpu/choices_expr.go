package cpu

// The choices of block programs (csrc/cpu/expr.h), whose elements are computed in tiles of 512.

var (
	exprNear = speed("expr.near",
		"operands above which programs of several chains fetch ahead, in KiB, as if each element had 8 bytes",
		"smaller ones lie in the second-level cache", 2048, 0, 512, 1024, 2048, 4096, 8192, 16384)
	exprAhead = speed("expr.ahead", "bytes by which several chains fetch each operand before they read it",
		"memory takes about as long as the chains of so many bytes", 1024, 256, 512, 1024, 2048, 4096)
	exprNext = speed("expr.next",
		"tiles by which operations outside of chains fetch operands, and the memory of their result",
		"a tile is computed in about the time in which the next one comes", 1, 1, 2, 4)
	exprFetches = speed("expr.fetches", "operands for which an operation outside of chains fetches",
		"others find them in the cache, or are foreseen by the processor", 4, 0, 1, 2, 4)
	reduceBlock = speed("reduce.block",
		"integers of a row that are searched at a time for the place of an extreme",
		"the place is looked for in one of these", 4096, 1024, 2048, 4096, 8192, 16384)
	exprTiles = speed("expr.tiles", "tiles that chains compute at a time",
		"finding the operands of the next ones is little beside so many", 256, 16, 64, 256, 1024)
)
