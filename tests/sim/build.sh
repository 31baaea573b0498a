#!/bin/sh
# build.sh DIR: builds the simulated vendor libraries into DIR, unless they exist and their sources
# have not changed. It needs gcc and g++. Any number of builds may run at once: each works in a
# separate directory and moves its libraries into place by renaming them, which does not affect a
# program that has the old ones open.
set -eu
here=$(cd "$(dirname "$0")/lib" && pwd)
CXX=${CXX:-g++}
CC=${CC:-gcc}
flags="-fPIC -O1 -fvisibility=hidden -Wall -Wextra -Werror ${SIM_FLAGS:-}"
libraries="libcuda.so.1 old/libcuda.so.1 libnvrtc.so.11.2 libamdhip64.so.5 libcublas.so.12 librocblas.so.4
	libnccl.so.2 librccl.so.1
	new/libcuda.so.1 new/libnvrtc.so.13 new/libnvrtc-builtins.so.13.0 new/libcublas.so.13"

mkdir -p "$1/old" "$1/new" "$1/rocblas/library"
out=$(cd "$1" && pwd)

# A checksum of everything that the libraries are built from.
cd "$here"
made_of=$({ $CXX --version; echo "$flags"; cat "../build.sh" *.* prelude/* ../../../csrc/host/* ../../../source/host/abi.h; } | cksum)
if [ "$(cat "$out/made-of" 2>/dev/null)" = "$made_of" ] && (cd "$out" && ls $libraries >/dev/null 2>&1); then
	echo "$1: up to date"
	exit 0
fi

sources="-DSIM_SOURCES='\"$made_of\"'"
work=$(mktemp -d "$out/.build-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$work/old" "$work/new"
export work

# Compiling the standard headers takes longer than compiling the code, hence the precompiled header.
$CXX -std=c++17 $flags -x c++-header -o "$work/core.h.gch" core.h
{
	echo "$CC -std=c11 $flags -c -o \"\$work/host.o\" ../../../csrc/host/host.c"
	for f in *.cpp; do
		echo "$CXX -std=c++17 $flags $sources -Wa,-I. -include \"\$work/core.h\" -c -o \"\$work/${f%.cpp}.o\" $f"
	done
} | tr '\n' '\0' | xargs -0 -n 1 -P "$(getconf _NPROCESSORS_ONLN)" sh -c

cd "$work"
core="host.o fault.o core.o"
$CXX -r -nostdlib -o core.o context.o memory.o stream.o graph.o copy.o module.o image.o
# link OUT MAP OBJECTS
link() {
	o=$1 map=$2
	shift 2
	$CXX ${SIM_FLAGS:-} -shared -static-libgcc -static-libstdc++ -Wl,-z,defs "-Wl,--version-script=$here/$map" -o "$o" "$@" -lpthread -ldl
}
link libcuda.so.1 cuda.map $core cuda_*.o flavour_12.o
# An older driver, without the functions that cuda_old.map hides.
link old/libcuda.so.1 cuda_old.map $core cuda_*.o flavour_12.o
nvrtc="fault.o compile.o kept.o process.o scan.o inspect.o image.o nvrtc.o"
link libnvrtc.so.11.2 nvrtc.map $nvrtc flavour_12.o
link libamdhip64.so.5 hip.map $core compile.o kept.o process.o scan.o inspect.o hip_*.o hiprtc.o flavour_12.o
link libcublas.so.12 blas.map cublas.o flavour_12.o
# CUDA 13: a driver without the functions that cuda_new.map hides, of which it has newer forms.
link new/libcuda.so.1 cuda_new.map $core cuda_*.o flavour_13.o
link new/libnvrtc.so.13 nvrtc_new.map $nvrtc flavour_13.o -Wl,-soname,libnvrtc.so.13
link new/libnvrtc-builtins.so.13.0 cuda.map builtins.o -Wl,-soname,libnvrtc-builtins.so.13.0
link new/libcublas.so.13 blas.map cublas.o flavour_13.o
link librocblas.so.4 blas.map rocblas.o
link libnccl.so.2 ccl.map fault.o ccl.o nccl.o flavour_12.o
link librccl.so.1 ccl.map fault.o ccl.o rccl.o flavour_12.o
for l in $libraries; do mv -f "$l" "$out/$l"; done
# rocBLAS supports the architectures that are in its files' names.
: >"$out/rocblas/library/kernels-gfx90a.dat"
echo "$made_of" >made-of
mv -f made-of "$out/made-of"
echo "$1:" $libraries
