package cpu

// The choices of products. A tile is the rows that a vector function computes at a time, a strip the columns.

// Large products, in panels.
var (
	gemmDepth = order("gemm.depth", "most rows of the right matrix in a panel",
		"memory is read in order, so that more than the first-level cache pays: C is passed over less often", 512, 128,
		192, 256, 384, 512, 768, 1024)
	gemmDepthShare = order("gemm.depth.share",
		"64ths of the second-level cache for some tiles and a strip of a panel",
		"they are read again and again while the block passes through", 32, 8, 16, 32, 48)
	gemmDepthTiles = order("gemm.depth.tiles", "tiles that are beside a strip in cpu.gemm.depth.share",
		"so many are read before the strip is again", 8, 2, 4, 8, 16)
	gemmDepthLeast = order("gemm.depth.least", "least rows of the right matrix in a panel, if caches are small",
		"C would be passed over too often", 64, 32, 64, 128)
	gemmPanel = speed("gemm.panel", "64ths of the third-level cache that a panel takes",
		"two panels are in use, and other processes have their shares", 8, 2, 4, 8, 16, 32)
	gemmCols = speed("gemm.cols", "most columns of a panel", "more of them are no longer read in less time", 4096,
		512, 1024, 2048, 4096, 8192)
	gemmChunk = speed("gemm.chunk", "strips that a task packs, and the least of a panel",
		"a task takes some microseconds", 8, 2, 4, 8, 16, 32)
	gemmBlock = speed("gemm.block", "64ths of the second-level cache that packed rows take",
		"strips and results pass through the rest", 48, 16, 24, 32, 40, 48, 56)
	gemmBlock32 = speed("gemm.block.avx2", "64ths of that cache that packed rows take, with registers of 32 bytes",
		"such processors have 512 KiB, in which strips of B and C need more of the room", 36, 16, 24, 32, 36, 40, 48,
		56)
	gemmTall  = speed("gemm.tall", "most tiles that a task multiplies", "enough tasks are left", 32, 4, 8, 16, 32, 64)
	gemmTasks = speed("gemm.tasks", "blocks of rows and columns for each thread", "threads differ in speed", 2, 1, 2,
		3, 4)
	gemmFetch = speed("gemm.fetch",
		"steps of the depth by which packed panels are fetched ahead; with 0 each step fetches what it reads",
		"they come from the second-level cache in so many steps", 24, 0, 8, 16, 24, 32, 48)
	halvesSmall = order("gemm.halves",
		"64ths of the second-level cache for matrices of 16 bits that are converted first",
		"conversions while packing cost more for small ones", 32, 4, 8, 16, 32, 64)
)

// Small products, and those with a matrix that stays in a cache.
var (
	directRows = order("gemm.direct.rows", "tiles of rows up to which the right matrix is not packed",
		"packing costs more than so few uses save", 4, 1, 2, 4, 8, 16)
	directDepth = order("gemm.direct.depth", "depth up to which nothing is packed", "each element is used at once",
		8, 2, 4, 8, 16, 32)
	directRight = order("gemm.direct.right", "64ths of the second-level cache for a right matrix that is not packed",
		"it is read from there", 32, 8, 16, 32, 48, 64)
	directTall = order("gemm.direct.tall", "rows up to which a right matrix in that cache is not packed",
		"more rows pay for packing", 240, 48, 96, 240, 480, 960)
	directWide = order("gemm.direct.wide",
		"strips up to which a right matrix in that cache is not packed, for any number of rows",
		"rows of it are adjacent", 2, 1, 2, 4, 8)
	directSplit = order("gemm.direct.split", "tiles for each thread from which rows are divided, and not columns",
		"every thread reads all of the right matrix then", 4, 1, 2, 4, 8)
	dotDepth = order("gemm.dot.depth", "depth from which on few columns are dot products, less one",
		"shorter sums are less than the lanes", 4, 2, 4, 8, 16)
	dotFew = order("gemm.dot.few", "columns, or rows, up to which products are dot products",
		"a register of columns would be almost empty", 4, 1, 2, 4, 8)
	dotRows = order("gemm.dot.rows", "rows from which on columns are turned for dot products",
		"turning them costs as much as some rows", 8, 4, 8, 16, 32)
	dotSum = order("gemm.dot.sum", "multiply-adds that the sum of the lanes of a register costs",
		"it is a tree of additions that wait for each other", 10, 4, 7, 10, 14, 20)
	narrowCols = order("gemm.narrow.cols", "strips up to which a deep product is divided by depth",
		"each element of the left matrix meets so few", 2, 1, 2, 4)
	narrowDepth = order("gemm.narrow.depth", "depth, in columns, above which narrow products are divided by depth",
		"sums are stored once for each part", 4, 1, 2, 4, 8, 16)
	narrowShare = order("gemm.narrow.share",
		"64ths of the second-level cache that a part of a narrow right matrix takes", "rows pass through the rest", 32,
		8, 16, 32, 48)
	narrowLeast = order("gemm.narrow.least", "least depth of a part of a narrow product",
		"sums are stored once for each part", 64, 32, 64, 128, 256)
	stripsLeft = order("gemm.strips.left", "64ths of the second-level cache for a left matrix that is not packed",
		"it stays there for all strips", 64, 0, 16, 32, 64, 96)
	stripsTurned = order("gemm.strips.turned", "64ths of that cache for a left matrix that is turned, and not packed",
		"its rows are read in steps as long as its columns", 8, 0, 4, 8, 16, 32, 64)
	stripsDeep = order("gemm.strips.deep", "64ths of the second-level cache for a strip beside that matrix",
		"each strip is read many times", 8, 2, 4, 8, 16)
	stripsRight = order("gemm.strips.right", "64ths of the third-level cache for the packed right matrix",
		"others help with its strips", 8, 2, 4, 8, 16)
	stripsParts = order("gemm.strips.parts", "parts of a strip's rows for each thread that helps",
		"threads end together", 4, 1, 2, 4, 8)
	thinRows = order("gemm.thin.rows", "rows up to which a register of columns has four sums for each row",
		"additions to a single sum would wait for each other", 3, 0, 1, 2, 3)
	thinDepth = order("gemm.thin.depth", "depth from which on it has four sums", "they are added up at the end", 8, 4,
		8, 16, 32, 64)
	batchNs = speed("gemm.batch", "nanoseconds of the smallest range of a batch", "a range costs some hundred", 5000,
		1000, 2500, 5000, 10000, 20000)
	intRows = speed("gemm.int.rows", "least rows of a task of integers", "columns are packed for each task", 16, 4,
		8, 16, 32)
)

// Products of few rows or columns, and with vectors.
var (
	fewMost = order("gemm.few.rows", "rows up to which a matrix is read as it is stored",
		"it comes from memory, and is not used often enough for another form", 32, 4, 8, 16, 32, 64)
	fewDeep = order("gemm.few.depth", "depth from which on a matrix is read as it is stored",
		"sums of lanes cost more", 16, 8, 16, 32, 64)
	fewLeast = order("gemm.few.least", "elements from which on a matrix is read as it is stored",
		"small ones are in a cache", 1<<12, 1<<10, 1<<11, 1<<12, 1<<14, 1<<16)
	fewAcross = order("gemm.few.across",
		"rows from which on a matrix in a cache is read so if it is transposed, less one",
		"it would be packed otherwise", 4, 1, 2, 4, 8, 16)
	fewAcrossLeast = order("gemm.few.across.least",
		"elements from which on a transposed matrix in a cache is read as it is stored",
		"packing small ones costs little", 1<<16, 1<<13, 1<<14, 1<<15, 1<<16, 1<<18)
	fewColumns = order("gemm.few.columns", "most columns of the matrix that a task computes",
		"their sums stay in the first-level cache", 2048, 512, 1024, 2048, 4096)
	fewTasks = order("gemm.few.tasks", "tasks for each thread of products of few rows", "threads end together", 2, 1,
		2, 4, 8)
	fewDots = speed("gemm.few.dots", "twelves of rows of the matrix in a task",
		"whole tiles of every instruction set", 1, 1, 2, 4, 8)
	fewBytes = speed("gemm.few.bytes",
		"bytes of a row of the matrix that are multiplied with all rows, if these are more than four",
		"they stay in the first-level cache for all of them", 1024, 256, 512, 1024, 2048, 4096)
	fewNarrow = order("gemm.few.narrow", "columns, or rows, below which the depth is divided, too",
		"tasks would be too few", 512, 128, 256, 512, 1024)
	fewPart = order("gemm.few.part", "matrix in a part of the depth of a product of few rows, in KiB",
		"a task takes some 50 µs", 1024, 256, 512, 1024, 2048)
	fewPartLeast = order("gemm.few.part.least", "least depth of a part of a product of few rows",
		"parts are added up at the end", 1024, 256, 512, 1024, 2048)
	gemvBlock = speed("gemv.block", "columns of a part of a transposed product with a vector",
		"the sums of its columns stay in the second-level cache", 4096, 1024, 2048, 4096, 8192)
	gemvRows = order("gemv.rows", "least rows of a part of a transposed product with a vector",
		"adding the parts takes little of the time", 64, 16, 32, 64, 128, 256)
	gemvPart = order("gemv.part", "matrix in a part of a transposed product with a vector, in KiB",
		"a task takes some 50 µs", 1024, 256, 512, 1024, 2048)
)
