# Concord. Each target is a few commands, which make prints, so that they can also be typed by hand.
# Building and importing do not need make, but -tags opencl needs an environment variable that `make
# env` prints.
#
#	make test TAGS=        without any vendor's shim
#	make test GO=go1.26.8  with another go command

GO          ?= go
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.7.0
FUZZTIME    ?= 10s

# The go command uses gcc by default, needs the C library's headers for cgo, and a home directory
# for its caches. Before make 4.4, $(shell) does not get exported variables, hence settings.
goenv = $(shell $(settings) $(GO) env $(1))
ifeq ($(origin CC)$(shell command -v gcc),default)
ifneq ($(shell command -v clang),)
export CC := clang
settings += CC=clang
endif
endif
ifeq ($(call goenv,CGO_ENABLED),1)
ifneq ($(shell $(call goenv,CC) -include stdlib.h -xc -E /dev/null >/dev/null 2>&1 && echo found),found)
$(warning the C compiler lacks the headers of the C library (Debian: libc6-dev): building without cgo)
export CGO_ENABLED := 0
settings += CGO_ENABLED=0
endif
endif
ifndef HOME
export HOME := $(shell getent passwd $$(id -u) | cut -d: -f6)
endif

# The tags of the shims that this machine can build: cuda, rocm and vulkan need cgo, opencl also OpenCL's
# headers, metal macOS. None needs a vendor's SDK or driver.
comma := ,
space := $(subst x,,x x)
os    := $(shell uname)
cgo    = $(filter 1,$(call goenv,CGO_ENABLED))
opencl = $(if $(filter Linux,$(os)),$(shell $(call goenv,CC) -include CL/opencl.h -xc -E /dev/null >/dev/null 2>&1 && echo opencl))
TAGS  ?= $(subst $(space),$(comma),$(strip $(if $(cgo),cuda rocm vulkan $(opencl) $(if $(filter Darwin,$(os)),metal))))

# Flags that the OpenCL binding needs to build with current headers, and the NVML binding to build
# without many warnings. CGO_CFLAGS replaces the go command's default -O2 -g, so these stay in it,
# and it applies to every package with C.
clflags = -DCL_TARGET_OPENCL_VERSION=120 -Wno-deprecated-declarations \
	-DCL_DEVICE_IMAGE_PITCH_ALIGNMENT=0x104A -DCL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT=0x104B
cflags  = $(call goenv,CGO_CFLAGS) $(if $(findstring CL_TARGET,$(CGO_CFLAGS)),,$(clflags))
tags    = $(if $(TAGS),-tags=$(TAGS))
flags   = $(if $(or $(findstring opencl,$(tags)),$(findstring cuda,$(tags))),CGO_CFLAGS='$(strip $(cflags))')

# Git refuses a checkout that belongs to another user, so that the go command could not stamp
# binaries.
export GOFLAGS := $(strip $(GOFLAGS) -buildvcs=false)

# The time after which a package of tests counts as hung. The slowest needs a few minutes on an idle
# machine, and many times that on a busy one.
limit = -timeout=3h

# What the tests need besides Go: a C++ compiler and an OpenCL that runs on any CPU.
packages := g++ opencl-c-headers ocl-icd-libopencl1 pocl-opencl-icd

# Packages that are tested under the race detector, the address sanitizer and the strict check of
# pointers that are passed to C.
concurrent := ./runtime/... ./internal/cgo ./cpu/... ./cuda/... ./rocm/... ./vulkan ./opencl/... ./tests/conformance ./tests/tensors
with_c     := ./internal/cgo/... ./csrc ./cpu/... ./cuda/... ./rocm/... ./vulkan ./opencl/... ./tests/conformance

# The tests use a kernel cache of their own: they do not touch the user's, and a second run need not
# compile.
test test-long race asan cgocheck nocgo test-rusticl test-oclgrind test-vulkan test-sim test-metal test-suites test-fault test-failover test-first test-gomlx test-mpi soak: export CONCORD_CACHE_DIR = $(CURDIR)/build/cache

.PHONY: help build demo test test-long deps race asan cgocheck nocgo check vet check-c test-rusticl \
	test-oclgrind test-vulkan test-sim test-metal test-suites test-compilers test-neon test-cache test-memory test-math test-exprs test-tensors test-page test-otel test-gomlx test-mpi test-fault test-failover test-first fuzz-programs soak bench bench-launch bench-compile bench-math bench-cache bench-pool bench-expr bench-tensors bench-cluster bench-group bench-shards bench-nearest bench-profile bench-validate bench-guard bench-peers fuzz fresh docs sim gpu-bundle gpu-rehearsal env fmt clean

help: ## list the targets
	@sed -n '/^[a-z-]*:.*## /{s/:.*## /\t/;s/\$$\$$/$$/g;p}' Makefile | expand -t 16

build: ## every package, and the command in bin/concord
	$(flags) $(GO) build $(tags) ./...
	$(flags) $(GO) build $(tags) -o bin/concord ./cmd/concord

# The demo builds only the parts that this machine uses: unless TAGS names them, without shims of
# vendors that have no device here, and without vector kernels that this processor does not use and
# the library that draws pictures.
processor = $(shell grep -m1 '^flags' /proc/cpuinfo 2>/dev/null)
avx512 = $(filter 6,$(words $(filter avx512f avx512bw avx512dq avx512vl fma f16c,$(processor))))
demo: absent = $(if $(filter file,$(origin TAGS)),$(if $(wildcard /dev/nvidiactl /dev/dxg),,cuda) $(if $(wildcard /dev/kfd),,rocm))
demo: left = $(filter $(absent),$(subst $(comma),$(space),$(TAGS)))
demo: unused = nopicture $(if $(processor),$(if $(avx512),noavx2,noavx512))
demo: tags = -tags=$(subst $(space),$(comma),$(strip $(filter-out $(absent),$(subst $(comma),$(space),$(TAGS))) $(unused)))
demo: ## kernels on real data, on every device of this machine; needs Go, and g++ for all of it
	@echo "Building the concord command: a minute or more the first time, seconds later on. The packages that are built follow by name; those of C and C++ take most of it."
	$(if $(left),@echo "Built without $(subst $(space), and ,$(left))$(comma) since this machine has no such device. With all of them: make demo TAGS=$(TAGS)")
	$(strip $(flags) $(GO) run -v $(tags) ./cmd/concord demo)

# With a pattern for the devices in subtests, go test also runs every test without such subtests:
# no-suite leaves out the tests of the conformance suite itself, which have none.
no-suite = -skip '^TestSuite'

# The directory of the simulated vendor libraries, for the tests that need them. Other tests do not
# see their devices.
simulated = CONCORD_SIM_DIR='$(CURDIR)/build/sim' CONCORD_REQUIRE=sim-cuda,sim-rocm $(flags)

# The catalog on every device runs as a separate command, so that its progress is visible.
test: deps ## the tests of every package; installs what they need if it can
	$(flags) $(GO) test $(tags) -short -count=1 $(limit) -skip '^TestWholeCatalog$$' ./...
	$(flags) $(GO) test $(tags) -short -count=1 $(limit) -run '^TestWholeCatalog$$' ./tests/parity
	@$(if $(and $(cgo),$(filter Linux,$(os))),if command -v g++ >/dev/null; then $(MAKE) --no-print-directory sim; else echo "g++ is missing; the simulated libraries are left out"; fi)
	[ ! -e build/sim/libcuda.so.1 ] || $(simulated) $(GO) test $(tags) -count=1 $(limit) -run '/sim-.*:0|Sim|Sweep' $(no-suite) \
	./csrc ./cuda ./rocm ./tests/conformance ./tests/cache ./tests/fault ./tests/first
	CGO_ENABLED=0 CONCORD_REQUIRE= $(GO) test -short -count=1 $(limit) ./runtime/... ./cpu ./opencl ./kernels

# The packages with tests that -short makes shorter: most of them compile much, or train.
test-long: deps ## what make test leaves out: every program of the catalog, every training, many more damaged programs and files
	$(flags) $(GO) test $(tags) -count=1 $(limit) ./ann ./cmd/... ./cpu ./csrc ./internal/verify/... ./nn ./opencl ./runtime/cluster ./runtime/kernelcache ./source/... ./tests/golden ./tests/parity ./tests/programs ./tests/stress
	$(flags) $(GO) test -tags=watchedchoices -count=1 $(limit) -run SubjectsRead ./runtime/tune

deps: ## install what the tests need (Debian, as root), or say what is missing
	@.ci/deps $(packages)

race: ## the concurrent packages under the race detector, and the simulated devices
	$(flags) $(GO) test $(tags) -race -count=1 $(limit) $(concurrent)
	[ ! -e build/sim/libcuda.so.1 ] || $(simulated) $(GO) test $(tags) -race -count=1 $(limit) -run '/sim-.*:0|Sim|Sweep' $(no-suite) ./tests/conformance ./tests/fault

# libstdc++ is linked in because the sanitizer must find it before a driver loads it.
asan: ## the packages with C in them under the address sanitizer
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 $(flags) $(GO) test $(tags) -asan -ldflags=-extldflags=-Wl,--no-as-needed,-lstdc++ \
	-count=1 $(limit) $(with_c)
	[ ! -e build/sim/libcuda.so.1 ] || ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 $(simulated) $(GO) test $(tags) -asan \
	-ldflags=-extldflags=-Wl,--no-as-needed,-lstdc++ -count=1 $(limit) -run '/sim-.*:0|Sim' ./cuda ./rocm

cgocheck: ## the same under the strict check of pointers that are passed to C
	GOEXPERIMENT=cgocheck2 $(flags) $(GO) test $(tags) -count=1 $(limit) $(with_c)

nocgo: ## all tests without cgo, with the Go kernels of the cpu backend
	CGO_ENABLED=0 $(GO) test -count=1 $(limit) ./...

check: vet check-c ## gofmt, vet in every build, staticcheck, the C sources, the layout
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "not gofmt'ed:"; echo "$$unformatted"; exit 1; }
	$(flags) $(GO) run $(STATICCHECK) $(tags) ./...
	CGO_ENABLED=0 $(GO) run $(STATICCHECK) -checks=inherit,-U1000 ./...
	$(GO) test -count=1 ./tests

vet: ## go vet: as built here, without tags, without cgo, for other systems
	$(flags) $(GO) vet $(tags) ./...
	$(GO) vet ./...
	$(GO) vet -tags=nopicture,noavx512,noavx2 ./cmd/... ./cpu ./internal/simd
	CGO_ENABLED=0 $(GO) vet ./...
	CGO_ENABLED=0 GOOS=darwin $(GO) vet ./...
	CGO_ENABLED=0 GOOS=windows $(GO) vet ./...

# The C sources for another processor than this machine's.
otherarch = $(if $(filter arm64,$(call goenv,GOARCH)),%_amd64.c,%_arm64.c)

check-c: ## the C sources with every warning an error
	$(if $(cgo),for f in $(filter-out $(otherarch),$(wildcard */*.c internal/gpu/*.c internal/simd/*.c)); do $$($(GO) env CC) -std=c11 -O2 -Wall -Wextra -Werror -c -o /dev/null $$f || exit; done)
	if echo '#include <math.h>' | aarch64-linux-gnu-gcc -fsyntax-only -x c - 2>/dev/null; then for f in internal/simd/*_arm64.c; do aarch64-linux-gnu-gcc -std=c11 -Wall -Wextra -Werror -fsyntax-only $$f || exit; done; fi

test-rusticl: packages += mesa-opencl-icd
test-rusticl: rusticl = RUSTICL_ENABLE=llvmpipe OCL_ICD_VENDORS=/etc/OpenCL/vendors/rusticl.icd CONCORD_REQUIRE=opencl $(flags)
test-rusticl: deps ## conformance and parity on Mesa's OpenCL
	$(rusticl) $(GO) test $(tags) -count=1 $(limit) -run 'EveryDevice/opencl' ./tests/conformance
	$(rusticl) $(GO) run $(tags) ./cmd/concord parity --device opencl:0

# Any driver will do: CONCORD_REQUIRE lists lavapipe, too. The layer reports to the output, in which its words are
# sought: VUID for what the specification forbids, SYNC for a hazard. CATALOG names kernels or families; without it
# the whole catalog runs, for minutes.
test-vulkan: packages += libvulkan1 libvulkan-dev mesa-vulkan-drivers vulkan-validationlayers glslang-tools spirv-tools
test-vulkan: layers = VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
test-vulkan: vulkan = CONCORD_REQUIRE=vulkan $(flags)
test-vulkan: deps ## the Vulkan backend on Mesa's lavapipe: its shim and conformance under the validation layer, the stress set, the catalog
	@mkdir -p build
	$(layers) $(vulkan) $(GO) test $(tags) -count=1 $(limit) -v -run '^Test[^E]|EveryDevice/vulkan' $(no-suite) ./vulkan ./tests/conformance >build/vulkan.log 2>&1 || \
	{ tail -n 50 build/vulkan.log; exit 1; }
	! grep -E 'VUID|SYNC-HAZARD|UNASSIGNED' build/vulkan.log
	$(vulkan) $(GO) test $(tags) -count=1 $(limit) -run '/vulkan:0' $(no-suite) ./tests/stress
	$(vulkan) $(GO) run $(tags) ./cmd/concord parity --device vulkan:0 $(CATALOG:%=--kernel %)

# The vector kernels of arm64 in an emulator, which shows that they are right, and nothing of their speed.
test-neon: packages = qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross
test-neon: vector-tests = $(shell grep -ho '^func Test[A-Za-z0-9]*' cpu/simd*_test.go | cut -c6-)
test-neon: deps ## the vector kernels of NEON in an emulator
	CGO_ENABLED=1 GOOS=linux GOARCH=arm64 CC=aarch64-linux-gnu-gcc $(GO) test -count=1 -short $(limit) \
	-exec 'qemu-aarch64 -L /usr/aarch64-linux-gnu' -run '^($(subst $(space),|,$(strip $(vector-tests))))$$' ./cpu
	CGO_ENABLED=1 GOOS=linux GOARCH=arm64 CC=aarch64-linux-gnu-gcc $(GO) test -count=1 $(limit) -exec 'qemu-aarch64 -L /usr/aarch64-linux-gnu' ./quant

# Half of the goroutines open one device, the other half another. FIRST_RUNS is the number of
# processes.
FIRST_RUNS ?= 1000
test-first: deps ## 1,000 fresh processes of 64 goroutines that open cpu:0 and opencl:0 at once, on PoCL alone
	FIRST_TEST_RUNS=$(FIRST_RUNS) CONCORD_REQUIRE=opencl $(flags) $(GO) test $(tags) -count=1 $(limit) -v -run 'TestFirstOpens/pocl/^64_cpu' ./tests/first

# Left out are tests that keep a device busy for long, which take far longer on a simulator, and
# tests that queue from several threads at once, which end oclgrind. oclgrind reports to a log,
# which has to stay empty.
test-oclgrind: packages += oclgrind
test-oclgrind: oclgrind = OCL_ICD_VENDORS='$(CURDIR)/build/oclgrind.icd' OCLGRIND_LOG='$(CURDIR)/build/oclgrind.log' OCLGRIND_DATA_RACES=1 \
	CONCORD_REQUIRE=opencl $(flags)
test-oclgrind: deps ## conformance, and the catalog at small sizes, on a simulator that finds overruns and data races in kernels
	@mkdir -p build && echo /usr/lib/oclgrind/liboclgrind-rt-icd.so >build/oclgrind.icd && : >build/oclgrind.log
	$(oclgrind) $(GO) test $(tags) -count=1 $(limit) -run 'EveryDevice/opencl' \
	-skip '/opencl/stream/(times|deadline|concurrency)|/opencl/kernel/shared|/opencl/lifetime/work|/opencl/error/abandon' ./tests/conformance
	PARITY_SMALL=opencl:0 $(oclgrind) $(GO) test $(tags) -count=1 $(limit) -run TestSmall ./tests/parity
	@cat build/oclgrind.log; [ ! -s build/oclgrind.log ]

test-sim: deps sim test-fault ## the simulated vendor libraries: conformance, the stress set, every fault, the catalog
	$(simulated) $(GO) test $(tags) -count=1 $(limit) -run '/sim-|Sim' $(no-suite) ./csrc ./cuda ./rocm ./tests/conformance ./tests/stress ./tests/cache ./tests/memory ./tests/failover ./ann
	$(subst build/sim,build/sim/new,$(simulated)) CONCORD_REQUIRE=sim-cuda $(GO) test $(tags) -count=1 $(limit) \
	-run '/sim-cuda:0|Sim' $(no-suite) ./cuda ./tests/conformance
	for d in sim-cuda:0 sim-rocm:0; do $(simulated) $(GO) run $(tags) ./cmd/concord parity --device $$d || exit; done
	$(simulated) $(GO) test $(tags) -count=1 $(limit) -run '^TestDigits$$/^sim-' ./nn
	$(simulated) $(GO) test $(tags) -count=1 $(limit) -run '^Test(Library|Transfer|Pairs|Simulated)' ./runtime/cluster

# Other test targets try a sample of the calls; this one tries all, and prints their number.
test-fault: sim ## every call into the simulated vendor libraries fails once
	$(simulated) FAULT_ALL=1 $(GO) test $(tags) -count=1 $(limit) -v ./tests/fault

# test-sim tries a few seeds; this one 200 for each kind of work.
test-failover: sim ## simulated devices are lost, have no memory left or hang while programs compute on them
	$(simulated) FAILOVER_ALL=1 $(GO) test $(tags) -count=1 $(limit) -v ./tests/failover

# The Metal shim on systems without Metal: Objective-C compiled by clang for GNUstep, with a
# simulated framework. cgo does not allow its flags by default. Clang supports halves from version
# 15 on.
CLANG ?= clang-15
test-metal: packages += clang-15 libgnustep-base-dev libblocksruntime-dev
test-metal: metal = CC=$(CLANG) CLANG=$(CLANG) CGO_CFLAGS_ALLOW='-f(objc-.*|constant-string-class=.*|blocks)' CONCORD_SIM_DIR='$(CURDIR)/build/sim' \
	CONCORD_REQUIRE=sim-metal
test-metal: deps ## the Metal shim on Linux, on a simulated framework: conformance, every fault, the catalog
	CLANG=$(CLANG) sh tests/sim/metal/build.sh build/sim
	CONCORD_REQUIRE=sim-metal $(GO) test -count=1 $(limit) -run Metal ./source/internal/render ./tests/sim
	$(metal) $(GO) test -tags=metal,simmetal -count=1 $(limit) ./metal
	$(metal) $(GO) test -tags=metal,simmetal -count=1 $(limit) -run '/sim-metal:0|SweepMetal|Archive' $(no-suite) ./tests/conformance ./tests/fault ./tests/stress
	$(metal) $(GO) test -tags=metal,simmetal -count=1 $(limit) -run 'EveryDevice/sim-metal:1' ./tests/conformance
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 $(metal) $(GO) test -asan -tags=metal,simmetal -count=1 $(limit) \
	-run 'Simulated|/sim-metal:[01]/(memory|kinds|stream)' $(no-suite) ./metal ./tests/conformance
	$(metal) $(GO) run -tags=metal,simmetal ./cmd/concord parity --device sim-metal:0

# Programs by other people, extracted from Debian's packages without installing these.
suites := piglit python3-silx python3-pyopencl starpu-examples
test-suites: packages += clang-15 libgnustep-base-dev libblocksruntime-dev
test-suites: metal = CC=$(CLANG) CLANG=$(CLANG) CGO_CFLAGS_ALLOW='-f(objc-.*|constant-string-class=.*|blocks)' CONCORD_SIM_DIR='$(CURDIR)/build/sim'
test-suites: deps ## how many kernels of public programs the simulated Metal compiles
	CLANG=$(CLANG) sh tests/sim/metal/build.sh build/sim
	mkdir -p build/suites && cd build/suites && apt-get download -q $(suites) && for p in *.deb; do dpkg-deb -x $$p $${p%%_*} || exit; done
	CONCORD_SUITES='$(CURDIR)/build/suites' CONCORD_SUITES_DEVICE=sim-metal:0 $(metal) \
	$(GO) test -tags=metal,simmetal -count=1 $(limit) -v -run TestSuites ./tests/stress

# NVRTC is in Debian's non-free component: this installs it only if that is enabled. With
# COMPILERS=turns each program is compiled for one architecture of each vendor, in rotation.
COMPILERS ?= all
test-compilers: packages += libnvrtc11.2 libnvidia-ptxjitcompiler1 libamdhip64-5 libhiprtc-builtins5 hipcc
test-compilers: deps ## the catalog and the stress set through NVRTC and hipRTC, for every architecture
	COMPILERS=$(COMPILERS) $(flags) $(GO) test $(tags) -count=1 $(limit) -v ./tests/compilers

test-cache: deps sim ## the kernel cache under 16 processes, kill -9, full disks and damage
	CONCORD_SIM_DIR='$(CURDIR)/build/sim' CACHE_TEST_FULL=1 $(flags) $(GO) test $(tags) -count=1 $(limit) -v \
	-run 'Process|Killed|Room|Damage|Bundle|Bounds' ./runtime/kernelcache ./tests/cache

# Other test targets run short forms of these.
test-memory: deps ## the memory pool under the model for long, and a training of full size recorded and replayed
	MEMPOOL_FULL=1 $(GO) test -count=1 $(limit) -v -run 'Model|Replay|Patterns' ./runtime/mempool -rapid.checks=1000
	MEMPOOL_FULL=1 $(flags) $(GO) test $(tags) -count=1 $(limit) -v ./tests/memory

# Tests take one float in 509.
test-math: ## the CPU's mathematical functions of one number with every float, by each host compiler
	MATH_FULL=1 $(GO) test -count=1 $(limit) -v -run TestFloatFunctions ./source/internal/render

# A module of its own, whose dependencies nothing else needs.
test-otel: ## the spans of OpenTelemetry; needs its modules, from the network at the first time
	@if cd otel && $(GO) mod download >/dev/null 2>&1; then $(GO) vet ./... && $(GO) test -count=1 $(limit) ./... && CGO_ENABLED=0 $(GO) vet ./...; \
	else echo "the modules of otel/go.mod cannot be fetched; its tests are left out"; fi

# Another module of its own. GOMLX_ALL=1 runs all of GoMLX's tests and of ONNX's.
test-gomlx: packages += libonnx-testdata
test-gomlx: deps ## GoMLX computes on every device of this machine; needs its modules, from the network at the first time
	@if cd gomlx && $(GO) mod download >/dev/null 2>&1; then $(GO) vet ./... && $(flags) $(GO) test $(tags) -count=1 $(limit) ./... && CGO_ENABLED=0 $(GO) vet ./...; \
	else echo "the modules of gomlx/go.mod cannot be fetched; its tests are left out"; fi

# MPI_RUN selects tests. MPI_FULL=2 makes all trainings with 2 and 4 processes of each launcher, too.
MPI_FULL ?= 1
test-mpi: packages += openmpi-bin mpich iproute2
test-mpi: deps ## groups of processes under Open MPI and MPICH: collectives, trainings, processes that are killed, networks that are cut; some minutes
	MPI_FULL=$(MPI_FULL) $(flags) $(GO) test $(tags) -count=1 $(limit) -v $(if $(MPI_RUN),-run '$(MPI_RUN)') ./runtime/cluster/mpi

test-page: packages = chromium
test-page: deps ## the page with a timeline in a browser without a window, which asks nobody for anything
	$(GO) test -count=1 -v $(limit) -run 'TestPage$$' ./runtime/profile

# Other test targets try 1,500, and compile 12.
test-exprs: deps ## 10,000 random expressions on every evaluator, 500 of them compiled; some ten minutes
	EXPRS=10000 COMPILED=500 $(flags) $(GO) test $(tags) -count=1 $(limit) -v -run TestRandom ./tests/exprs

# Other test targets try 600.
test-tensors: deps ## 10,000 random graphs of tensors and 3,300 of their gradients; some three minutes
	GRAPHS=10000 NODES=10000 $(flags) $(GO) test $(tags) -count=1 $(limit) -v ./tests/tensors

bench: ## measured rates of this machine's devices beside their limits
	$(flags) $(GO) run $(tags) ./cmd/concord bench

bench-launch: ## what a launch costs
	$(flags) $(GO) test $(tags) -run '^$$' -bench 'Launch|Steady' -benchmem ./runtime ./internal/cgo ./cpu ./cuda ./opencl ./tests/memory

bench-compile: ## the processor time of the host compiler for small programs, one by one and together
	$(flags) $(GO) test $(tags) -run '^$$' -bench CompileSmall -benchtime 3x ./cpu

bench-math: ## kernels that call mathematical functions on the CPU, beside the built-in ones
	$(flags) $(GO) test $(tags) -run '^$$' -bench Math ./tests/stress

bench-cache: ## what the kernel cache saves; PoCL's own cache is off
	POCL_KERNEL_CACHE=0 $(flags) $(GO) test $(tags) -run '^$$' -bench 'Hit|Lookup|Key|Program|Compile|Load' -benchmem ./runtime/kernelcache ./runtime ./cpu
	POCL_KERNEL_CACHE=0 $(flags) $(GO) test $(tags) -run '^$$' -bench NewProcess -benchtime 5x ./tests/cache

bench-pool: ## what a block of the memory pool costs to get and put back, and what one of the driver costs
	$(flags) $(GO) test $(tags) -run '^$$' -bench 'GetPut' -benchmem -cpu 1,2 ./runtime/mempool
	$(flags) $(GO) test $(tags) -run '^$$' -bench 'Memory' -benchmem ./runtime ./tests/memory

bench-expr: ## fused expressions beside their operations one by one, functions, reductions beside the built-in kernels, 200 random chains, first use
	$(flags) $(GO) test $(tags) -run '^$$' -bench 'Fused$$' -benchtime 31x ./kernels/expr
	$(flags) $(GO) test $(tags) -run '^$$' -bench 'Functions' -benchtime 15x ./kernels/expr
	$(flags) $(GO) test $(tags) -run '^$$' -bench 'Fused(Chains|First)' -benchtime 1x ./kernels/expr
	$(flags) $(GO) test $(tags) -run '^$$' -bench 'Reduced$$' -benchtime 15x ./kernels/expr

bench-tensors: ## 200 random chains of operations on tensors, fused and operation by operation, in turn
	$(flags) $(GO) test $(tags) -run '^$$' -bench Chains -benchtime 1x ./tests/tensors

bench-cluster: ## all-reduces among members of one device beside copies, in turn, and what small ones cost
	$(flags) $(GO) test $(tags) -run '^$$' -bench AllReduce -benchtime 31x ./runtime/cluster
	$(flags) $(GO) test $(tags) -run '^$$' -bench Small ./runtime/cluster

bench-group: packages += openmpi-bin
bench-group: deps ## training by two processes and by two members beside one process of as many threads, in turn
	$(flags) $(GO) test $(tags) -run '^$$' -bench Together -benchtime 5x $(limit) ./cmd/concord/internal/training

bench-shards: ## 10⁶ vectors in shards on two members of one thread each, beside one of one thread, in turn; SHARD_ROWS has fewer
	$(flags) $(GO) test $(tags) -run '^$$' -bench Shards -benchtime 1x -timeout 3h ./ann

bench-nearest: ## the search of the nearest vectors on the CPU beside reading them, in turn
	$(flags) $(GO) run $(tags) ./tests/peers --only nearest

soak: deps ## 10⁶ mixed operations on indexes of vectors under the race detector, half an hour or more, and 200 processes that are killed while they save
	ANN_OPERATIONS=1000000 ANN_KILLS=200 $(flags) $(GO) test $(tags) -race -count=1 -timeout 6h -run 'TestMixed|TestKilledSave' ./ann

bench-profile: ## what observing costs, for launches of 50 µs to 5 ms, off and on in turn; and a trace of a million events
	$(simulated) $(GO) test $(tags) -run '^$$' -bench Observed -benchtime 41x ./tests/memory
	$(flags) $(GO) test $(tags) -run '^$$' -bench WriteTrace -benchmem ./runtime/profile

bench-validate: ## what validating one in 1,000 launches costs a training, off and on in turn
	$(flags) $(GO) test $(tags) -run '^$$' -bench Training -benchtime 31x ./runtime/validate

bench-guard: ## what concord bench --compare finds on this machine: 100 comparisons of the same, 20 with 15 % more work
	GUARD=100 $(flags) $(GO) test $(tags) -count=1 $(limit) -v -run 'TestGuard$$' ./cmd/concord/internal/bench

# SET=avx2 holds the backend and the peers to AVX2; PEERS has flags, as in PEERS='--only gemm,conv'.
bench-peers: packages = libopenblas0-pthread python3-torch python3-faiss
bench-peers: deps ## the cpu backend beside OpenBLAS, PyTorch and FAISS, in turn; pictures in build/peers
	$(if $(SET),CONCORD_CPU_KERNELS=$(SET)) $(flags) $(GO) run $(tags) ./tests/peers $(PEERS)

fuzz: ## every fuzz target for FUZZTIME
	@grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's/:func / /' | while read -r file name; do \
		set -- $(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")"; \
		echo "$$@"; "$$@" </dev/null || exit; \
	done

# Programs with different results are written to build/programs, whole and reduced. PROGRAMS_SEED=7
# tries that seed alone, on every implementation of this machine, and SEED=7 begins with it.
TIME ?= 10m
fuzz-programs: packages += clang-15
fuzz-programs: deps sim ## generated programs on every implementation here for TIME, their results compared
	PROGRAMS_TIME=$(if $(PROGRAMS_SEED),,$(TIME)) $(if $(SEED),PROGRAMS_SEED=$(SEED)) CONCORD_REQUIRE=opencl $(flags) $(GO) test $(tags) -count=1 -timeout=0 -v -run TestPrograms ./tests/programs

sim: ## the simulated vendor libraries in build/sim; needs gcc and g++
	@sh tests/sim/build.sh build/sim

docs: ## the parts of docs/ that programs know: commands, environment variables, the picture of rates
	$(flags) $(GO) test $(tags) -count=1 -run '^Test(Commands|Environment)Page$$' ./cmd/concord ./tests -update
	$(flags) $(GO) run $(tags) ./tests/peers --ratios docs/rates.csv

# Tests of a machine as a new user has it. FRESH=all runs every case; FRESH="NAME ..." runs those
# cases.
FRESH ?= all
fresh: packages := debootstrap
fresh: deps ## the README's commands on Debian's minimal system, and where things are missing or odd; as root
	@tests/fresh/run.sh $(FRESH)

# The program leaves out the CPU's AVX-512 kernels, since there the CPU is only the judge of the GPU. What can be
# carried to such a machine is limited: the program to 30 MiB, and with the working tree to 60.
tree = $$(git -c safe.directory='*' ls-files -co --exclude-standard -z | xargs -0 ls -l 2>/dev/null | awk '{ n += $$5 } END { print n }')
gpu-bundle: ## concord verify for a machine with a GPU and without Go, compressed, in build/gpu; run.sh unpacks it
	@rm -rf build/gpu && mkdir -p build/gpu
	$(flags) $(GO) build -tags=$(TAGS),nopicture,noavx512 -trimpath -ldflags '-s -w' -o build/gpu/concord ./cmd/concord
	@! readelf -d build/gpu/concord | grep -iE 'NEEDED.*(cuda|nvrtc|nvidia|cublas|hip|roc|opencl|vulkan)' || { echo "a vendor's library is linked in"; exit 1; }
	gzip -n9 build/gpu/concord
	cp tests/gpu/run.sh build/gpu
	@size=$$(cat build/gpu/* | wc -c); tree=$(tree); mib() { awk "BEGIN { printf \"%.1f MiB\", $$1 / 1048576 }"; }; \
	echo "build/gpu: $$(mib $$size) of 30 MiB; with the working tree $$(mib $$((size + tree))) of 60 MiB; run.sh is there"; \
	[ $$size -le $$((30 << 20)) ] && [ $$((size + tree)) -le $$((60 << 20)) ] || { echo "more than can be carried to a machine"; exit 1; }

gpu-rehearsal: packages := debootstrap g++
gpu-rehearsal: deps gpu-bundle sim ## run the bundle on a machine with nothing but simulated devices and PoCL, under every mishap; some minutes, as root
	$(flags) $(GO) build -tags=$(TAGS),nopicture,noavx512,plantedfault -trimpath -ldflags '-s -w' -o build/planted ./cmd/concord
	@tests/gpu/rehearse.sh $(CASES)

env: ## print what programs that import Concord with these tags need: eval "$$(make -s env)"
	@echo "export GOFLAGS='$(strip $(filter-out -buildvcs=false,$(GOFLAGS)) $(tags))'"; $(if $(flags),echo "export $(flags)")

fmt: ## format Go, and C where clang-format is
	gofmt -w .
	-command -v clang-format >/dev/null && clang-format -i csrc/*/*.c csrc/*/*.h

clean: ## remove what these targets made
	rm -rf bin build
