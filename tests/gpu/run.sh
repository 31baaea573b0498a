#!/bin/sh
# Runs `concord verify` on a machine with a GPU; nothing else is needed there.
#
#   run.sh [DEVICE [RESULTS [MINUTES [FLAG...]]]]
#
# DEVICE is cuda:0 when absent; RESULTS, the folder that gets the report, is ./results; MINUTES is 7.
# Further flags are those of concord verify, as in: run.sh cuda:0 results 3 --only failed
# The program lies compressed beside this script, which unpacks it there the first time. The exit
# status is 0 if everything ran, and nothing failed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ ! -x "$here/concord" ]; then
	# Another run that begins now finds the program whole or not at all.
	{ gunzip -c "$here/concord.gz" >"$here/concord.$$" && chmod +x "$here/concord.$$" && mv -f "$here/concord.$$" "$here/concord"; } || {
		rm -f "$here/concord.$$"
		echo "run.sh: the program cannot be unpacked in $here: copy this folder to where there is room and you may write" >&2
		exit 1
	}
fi
device=${1:-cuda:0} results=${2:-results} minutes=${3:-7}
[ $# -le 3 ] && set -- || shift 3
exec "$here/concord" verify "$device" --minutes "$minutes" --out "$results" "$@"
