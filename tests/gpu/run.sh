#!/bin/sh
# Runs the test programs beside it on a machine with a GPU; Go is not needed there.
#
#   run.sh [BACKEND...]   the backends that must be there: "opencl". Without one, what
#                         is not there is skipped.
set -u
cd "$(dirname "$0")" || exit 1
CONCORD_REQUIRE=$(echo "$*" | tr ' ' ',')
export CONCORD_REQUIRE
failed=0
./concord devices
for test in ./*.test; do
	echo "== $test"
	"$test" -test.v -test.timeout=20m || failed=1
done
exit $failed
