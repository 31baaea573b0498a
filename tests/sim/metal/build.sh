#!/bin/sh
# build.sh DIR: builds the simulated Metal framework, DIR/libSimMetal.so, unless it exists and its
# sources have not changed. It needs clang, g++, GNUstep's base library and libblocksruntime
# (Debian: clang libgnustep-base-dev libblocksruntime-dev).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
CLANG=${CLANG:-clang}
CXX=${CXX:-g++}
common="-fPIC -O1 -Wall -Wextra -Werror ${SIM_FLAGS:-}"

mkdir -p "$1/include"
out=$(cd "$1" && pwd)
ln -sfn "$($CXX -print-file-name=include)/objc" "$out/include/objc"
objc=$(sh "$here/flags.sh" "$out")
cd "$here"
made_of=$({ $CLANG --version; $CXX --version; echo "$common"; find . ../lib ../../../csrc/host ../../../source/host/abi.h -type f | sort | xargs cat; } | cksum)
if [ "$(cat "$out/made-of-metal" 2>/dev/null)" = "$made_of" ] && [ -e "$out/libSimMetal.so" ]; then
	echo "$1/libSimMetal.so: up to date"
	exit 0
fi

work=$(mktemp -d "$out/.build-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
gcc -std=c11 $common -fvisibility=hidden -c -o "$work/host.o" ../../../csrc/host/host.c
for f in *.cpp ../lib/fault.cpp ../lib/flavour_12.cpp ../lib/process.cpp; do
	$CXX -std=c++17 $common -fvisibility=hidden -Wa,-I. -c -o "$work/$(basename "$f" .cpp).o" "$f"
done
for f in *.m; do
	$CLANG $objc $common -c -o "$work/${f%.m}.o" "$f"
done
# The blocks runtime comes before GNUstep, whose own version does not copy whole blocks.
$CXX ${SIM_FLAGS:-} -shared -static-libgcc -static-libstdc++ -Wl,-z,defs -o "$work/libSimMetal.so" "$work"/*.o \
	-lBlocksRuntime -lgnustep-base -lobjc -lpthread -ldl
mv -f "$work/libSimMetal.so" "$out/libSimMetal.so"
echo "$made_of" >"$work/made-of-metal"
mv -f "$work/made-of-metal" "$out/made-of-metal"
echo "$1/libSimMetal.so"
