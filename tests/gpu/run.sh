#!/bin/sh
# Runs the programs beside it on a machine with a GPU; Go is not needed there.
#
#   run.sh [DEVICE [RESULTS]]
#
# DEVICE is cuda:0 when absent; RESULTS, a folder that gets the JSON documents and the
# logs, is ./results. It goes on after a failure and exits with 1 if there was any.
#
# It searches for NVRTC in the directories of toolkits and PyTorch, for compute-sanitizer, and for
# PyTorch, whose matrix product (cuBLAS) is then measured beside Concord's.
set -u
cd "$(dirname "$0")" || exit 1
# The programs come compressed, since what can be carried to such a machine is often limited.
for packed in *.gz; do
	[ ! -e "$packed" ] || gunzip -f "$packed" || exit 1
done
device=${1:-cuda:0}
mkdir -p "${2:-results}" || exit 1
results=$(cd "${2:-results}" && pwd)
backend=${device%%:*}
export CONCORD_REQUIRE="$backend"
export CONCORD_CACHE_DIR="$results/.cache"
mkdir -p "$CONCORD_CACHE_DIR" && chmod 700 "$CONCORD_CACHE_DIR"
failed=0

# step NAME COMMAND...: runs a command with its log in RESULTS/NAME.log.
step() {
	name=$1
	shift
	printf '== %s: %s\n' "$name" "$*"
	if "$@" >"$results/$name.log" 2>&1; then
		echo "   passed"
	else
		echo "   FAILED (status $?):"
		tail -n 15 "$results/$name.log" | sed 's/^/   /'
		failed=1
	fi
}

# json NAME COMMAND...: the same for a command whose output is a document.
json() {
	name=$1
	shift
	printf '== %s: %s\n' "$name" "$*"
	"$@" >"$results/$name.json" 2>"$results/$name.log" || {
		echo "   FAILED (status $?)"
		tail -n 15 "$results/$name.log" | sed 's/^/   /'
		failed=1
	}
}

# The loader does not search the directories in which toolkits and PyTorch install NVRTC.
if [ -z "${CONCORD_NVRTC_LIBRARY:-}" ]; then
	for found in /usr/local/cuda*/lib64/libnvrtc.so.* \
		$(python3 -c 'import glob, site; print(*(f for p in site.getsitepackages() for f in glob.glob(p + "/nvidia/*/lib/libnvrtc.so.*")))' 2>/dev/null); do
		case $found in *builtins* | *alt*) continue ;; esac
		[ -e "$found" ] && export CONCORD_NVRTC_LIBRARY="$found" && break
	done
fi
echo "NVRTC: ${CONCORD_NVRTC_LIBRARY:-the loader's}"

json devices ./concord devices --json
step doctor ./concord doctor
step conformance ./conformance.test -test.v -test.timeout=8m -test.run "EveryDevice/$backend"
json parity ./concord parity --device "$device" --json
json bench ./concord bench --device "$device" --json
[ ! -x ./cuda.test ] || step backend ./cuda.test -test.v -test.timeout=5m
if [ -x ./cuda.test ] && [ "$backend" = cuda ]; then
	step launch ./cuda.test -test.run '^$' -test.bench . -test.benchmem
	# If no device opens, the benchmark uses a simulated one or is skipped.
	grep -q '^BenchmarkLaunch/cuda' "$results/launch.log" || {
		echo "   FAILED: it did not run on the device"
		failed=1
	}
fi

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -n 1)
if [ -n "$sanitizer" ]; then
	for tool in memcheck racecheck; do
		step "$tool" env PARITY_SMALL="$device" "$sanitizer" --tool "$tool" --error-exitcode 9 ./parity.test -test.run TestSmall -test.timeout=8m
	done
else
	echo "== memcheck, racecheck: not here: compute-sanitizer"
fi

if python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
	json torch python3 torch_rates.py
else
	echo "== torch: not here: PyTorch with CUDA"
fi
rm -rf "$results/.cache"
exit $failed
