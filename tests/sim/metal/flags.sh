# flags.sh DIR prints what clang needs to compile Objective-C against the headers beside this file,
# on GNUstep. DIR is that of build.sh: the runtime's headers, which GCC has among its own, are linked
# to from there.
here=$(cd "$(dirname "$0")" && pwd)
echo "-std=gnu11 -I$here/include -isystem /usr/include/GNUstep -isystem $(cd "$1" && pwd)/include" \
	"-DGNUSTEP -DGNUSTEP_BASE_LIBRARY=1 -DGNU_RUNTIME=1 -D_NATIVE_OBJC_EXCEPTIONS -fblocks -fexceptions" \
	"-fobjc-exceptions -fobjc-runtime=gcc -fconstant-string-class=NSConstantString"
