package cpu

// The choices of convolutions. Rooms are in 64ths of the second-level cache, if nothing else is said.

// Convolutions as products with planes.
var (
	convRoom = order("conv.room", "room of the planes of a task", "filters and results pass through the rest", 32, 8,
		16, 24, 32, 48)
	convDeep = order("conv.deep", "products that are summed at a time with registers of 32 bytes or less",
		"a strip of the planes stays in the first-level cache, where all filters find it", 300, 100, 200, 300, 400, 600)
	convBare = order("conv.bare", "room of filters of 1×1 that read the image itself",
		"they are read once for each part of its rows", 32, 0, 8, 16, 32, 48)
	convBareWide = speed("conv.bare.wide",
		"KiB of four registers of all channels of an image up to which filters of 1×1 are multiplied with so wide a part",
		"longer parts of rows are read from memory sooner, but each meets half a tile of filters", 16, 0, 8, 16, 32)
	convCopy = order("conv.copy", "products that the copy of an element costs",
		"a load and a store beside two units", 4, 1, 2, 4, 8, 16)
	convSums = order("conv.sums", "products that are summed at least before results are stored",
		"storing and loading them is little beside these", 512, 128, 256, 512, 1024)
	convTasks = order("conv.tasks", "tasks for each thread", "threads end together", 4, 1, 2, 4, 8)
	convOuts  = order("conv.outputs", "least elements of the output of a task", "filters are read for each task", 256,
		64, 128, 256, 512, 1024)
	convSmall = order("conv.small", "registers of an output from which on images are not put side by side",
		"they are filled well", 8, 2, 4, 8, 16)
	convSmallFilters = order("conv.small.filters", "tiles of filters from which on images are put side by side",
		"copies pay if they are used often", 4, 1, 2, 4, 8)
	convBeside = order("conv.beside", "registers of images that are put side by side",
		"twice those that fill a tile", 16, 4, 8, 16, 32)
	convRanges = speed("conv.ranges", "ranges of tasks for each thread", "threads end together", 16, 4, 8, 16, 32)
	convGrain  = speed("conv.grain", "elements that are packed or converted at least at a time",
		"a task takes some 20 µs", 1<<16, 1<<14, 1<<15, 1<<16, 1<<17)
	convDilated = order("conv.dilated",
		"percent of the products from which on filters with dilation leave out those in the padding",
		"the image is copied to cells, and the output from cells", 5, 0, 5, 10, 20, 100)
	phasesRoom = order("conv.phases.room", "room of the planes of all phases, and of the sums of a tile",
		"both are in use together", 32, 8, 16, 24, 32)
	phasesSums = speed("conv.phases.sums", "room of the sums of the filters that are computed together",
		"the planes have the other half", 16, 4, 8, 16, 24)
)

// Winograd's method.
var (
	winogradOuts = order("winograd.outputs", "elements of all outputs from which on Winograd's method is used",
		"filters are transformed once for all of them", 256, 64, 128, 256, 512, 1024)
	winogradOuts2 = order("winograd.outputs.stride",
		"elements of all outputs from which on Winograd's method is used with strides of 2",
		"fewer products are saved with each transformed filter", 1024, 256, 512, 1024, 2048)
	winogradChannels = order("winograd.channels", "channels from which on Winograd's method is used",
		"transforms of results are shared by all channels", 16, 4, 8, 16, 32, 64)
	winogradFilters = order("winograd.filters", "tiles of filters from which on Winograd's method is used",
		"transforms of images are shared by all filters", 4, 1, 2, 4, 8)
	winogradMost = order("winograd.most",
		"transformed filters, in 64ths of the third-level cache, up to which Winograd's method is used",
		"they are read for each strip", 64, 0, 16, 32, 64, 128)
	winogradNear = speed("winograd.near", "room of transformed filters up to which strips are computed one by one",
		"they are read again from there", 32, 8, 16, 32, 48)
	winogradStrip = speed("winograd.strip", "room of the channels of strips that are computed together",
		"products pass through the rest", 8, 2, 4, 8, 16)
	winogradStrips = speed("winograd.strips", "most strips that are computed together", "tasks would be too few", 16,
		1, 4, 8, 16, 32)
	winogradTasks = speed("winograd.tasks", "strips for each thread from which on filters are not divided",
		"threads have equal numbers of them", 4, 1, 2, 4, 8)
	winogradSums = speed("winograd.sums", "room of the products of filters that are computed together",
		"they are transformed at once", 32, 8, 16, 32, 48)
)

// Filters that are longer than the output.
var (
	longOuts = order("conv.long.outputs", "elements of an output up to which filters are the longer side",
		"lanes would be empty by the definition", 128, 0, 32, 64, 128, 256)
	longDepth = order("conv.long.depth", "products of an element from which on filters are the longer side",
		"they pay for the sums of lanes at their ends", 512, 128, 256, 512, 1024)
	longFilters = order("conv.long.filters", "rows of filters of a task, in 64ths of the second-level cache",
		"each is copied once for its task", 512, 128, 256, 512, 1024)
	longShare = order("conv.long.share", "filters of a task, in 64ths of the third-level cache",
		"they stay there for all images", 16, 4, 8, 16, 32)
	longMost = order("conv.long.most", "most elements of a filter at a time", "planes of them stay in a cache", 4096,
		1024, 2048, 4096, 8192)
	longLeast = order("conv.long.least", "least elements of a filter at a time", "the sums of lanes would cost more",
		1024, 256, 512, 1024)
	longImages = speed("conv.long.images", "images at a time that are read as they are",
		"a table of places is short", 64, 8, 16, 32, 64, 128)
	longPlanes = speed("conv.long.planes", "room of the planes of images at a time", "filters pass through the rest",
		8, 2, 4, 8, 16, 24)
	turnedPays = order("conv.turned.products", "products of a filter's element that pay for the copy of an image's",
		"copies turn tiles, which costs more than to move lines", 64, 16, 32, 64, 128, 256)
	turnedLeast = order("conv.turned.least", "registers of images of a task that are left if images are divided",
		"tiles are as wide", 2, 1, 2, 4)
	turnedMost = order("conv.turned.most", "most registers of images of a task", "the sums of more filters fit then",
		4, 2, 4, 8)
	turnedFill = order("conv.turned.fill", "percent of the images in whole registers that have to be there",
		"the rest is computed for nothing", 75, 50, 60, 75, 90)
	turnedSums = order("conv.turned.sums", "room of the sums of the filters of a task", "copies have as much", 16, 4,
		8, 16, 24)
	turnedRoom = order("conv.turned.room", "room of the copies of a task", "filters pass through the rest", 16, 4, 8,
		16, 24)
	turnedDeep = order("conv.turned.deep", "products that are summed at a time",
		"rows of the copies stay in the first-level cache", 512, 128, 256, 512, 1024)
)
