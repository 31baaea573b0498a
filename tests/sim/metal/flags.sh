# flags.sh DIR prints the flags with which clang compiles Objective-C with the headers beside this
# file, on GNUstep. DIR is that of build.sh: it gets a link to the headers of the Objective-C
# runtime, which are in a directory of GCC's.
here=$(cd "$(dirname "$0")" && pwd)
echo "-std=gnu11 -I$here/include -isystem /usr/include/GNUstep -isystem $(cd "$1" && pwd)/include" \
	"-DGNUSTEP -DGNUSTEP_BASE_LIBRARY=1 -DGNU_RUNTIME=1 -D_NATIVE_OBJC_EXCEPTIONS -fblocks -fexceptions" \
	"-fobjc-exceptions -fobjc-runtime=gcc -fconstant-string-class=NSConstantString"
