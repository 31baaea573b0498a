#!/usr/bin/env bash
# rehearse.sh [CASE...]: runs the bundle that make gpu-bundle packed, as it is run on a machine with a
# GPU, and judges what it reports. The machine is Debian's minimal system with an OpenCL for CPUs: it has
# no Go, no compiler, no network and no home, and the bundle's folder is read-only except for the results.
# Devices are simulated CUDA devices, PoCL and the CPU. It needs make sim, and what tests/fresh/root.sh
# says; without that it says so and succeeds. Without names it runs every case, two at a time.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/fresh/root.sh

# A case is a line: its name, the user it runs as, and what it shows. Its function below runs in the
# machine, as the first process there. Long ones come first.
cases="
cuda      root     the whole plan on a simulated CUDA device, with 16 threads
opencl    newcomer the whole plan on PoCL
killed    newcomer the process of every step is killed after its first check
ended     newcomer the program and its processes are killed together in the middle
planted   newcomer a wrong result is found and named
nonvrtc   root     NVRTC is missing
oldnvrtc  root     NVRTC lacks functions
cuda13    root     the libraries of CUDA 13
newarch   root     NVRTC does not know the device
memory    root     the device has little memory
space     newcomer the machine has little memory
nodevice  newcomer there is no such device
disk      root     there is no room for the results, or no permission
again     newcomer 12 seconds, and then a second run into the same folder, whose name has spaces
"

# What follows runs in the machine.

# run DEVICE RESULTS MINUTES [FLAG...]: sets $status, $took and $said.
run() {
	local begun=$SECONDS
	said=$(sh ./run.sh "$@" 2>&1)
	status=$? took=$((SECONDS - begun)) results=$2
	printf '%s\n(status %d, %d s)\n' "$said" $status $took
	[ $took -le "$(awk "BEGIN { print int(60 * $3) + 4 }")" ] || fail "it took $took s"
}

fail() { echo "REHEARSAL: $*"; failed=1; }

# holds EXPRESSION: about the report, for jq.
holds() { jq -e "$1" "$results/report.json" >/dev/null || fail "the report: $1"; }

# says TEXT: the report or the output contains it.
says() { grep -qFi -- "$1" "$results/report.md" <(echo "$said") 2>/dev/null || fail "nothing says: $1"; }

# lists: the report has every step of the plan, and nothing failed.
lists() {
	holds "[.steps[].step] == $(./concord verify --list --json | jq -c '[.[].name]')"
	holds 'all(.steps[]; (.failed == 0) and (.endings == null) and (.state | IN("done", "cut off", "not here", "not run")))'
	holds 'all(.steps[]; .state != "not run" or (.reason | length > 0))'
}

# clean: what the results may take on a machine that sends few files back, and nothing else is left.
clean() {
	local list
	[ -z "$(find "$results" -mindepth 3)" ] && [ -z "$(find "$results" -size +16M)" ] && [ "$(find "$results" -type f | wc -l)" -le 8 ] ||
		fail "the results are too many, too large or too deep: $(find "$results")"
	list=$(ls -A /tmp)
	[ -z "$list" ] || fail "left in /tmp:" $list
	gone
}

# gone: no process is left, a second after the program ended.
gone() {
	local p name
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		name=
		for p in /proc/[1-9]*; do
			[ "$p" = /proc/1 ] || { read -r name <"$p/comm"; } 2>/dev/null
		done
		[ -z "$name" ] && return
		sleep 0.1
	done
	fail "a process is left: $name"
}

in_cuda() {
	run sim-cuda:0 results 2
	[ $status = 0 ] || holds 'any(.steps[]; .state == "not run")'
	lists
	holds '.over and .about.info.simulated and ([.steps[] | select(.passed > 0 or .rates)] | length >= 9)'
	says 'SIMULATED, NOT A CARD'
	clean
}

in_opencl() {
	run opencl:0 results 1.2
	[ $status = 0 ] || holds 'any(.steps[]; .state == "not run")'
	lists
	says 'a processor, not a card'
	clean
}

# The program starts the processes of steps from its own path. Once it runs, a script takes that place. So
# that it takes it before the first process, the program finds an earlier report that does not end
# until then. The script kills each step's first process, itself with it, when a second check has begun.
in_killed() {
	local place=/home/newcomer/killed
	mkdir -p $place results && cp concord $place/concord.real && cp concord $place/concord && mkfifo results/report.json
	cat >$place/script <<-'EOS'
		#!/bin/bash
		read -r job
		step=$(jq -r .step <<<"$job") real=$0.real
		mkdir "${0%/*}/$step" 2>/dev/null || exec "$real" "$@" < <(printf '%s\n' "$job"; cat 2>/dev/null)
		"$real" "$@" < <(printf '%s\n' "$job"; cat 2>/dev/null) | while read -r line; do
			printf '%s\n' "$line"
			case $line in '{"check"'* | '{"rate"'*) over=1 ;; '{"doing"'*) [ -z "$over" ] || kill -9 0 ;; esac
		done
	EOS
	chmod +x $place/script
	exec 3<>results/report.json
	echo '{"schema": "concord verify 1", "device": "another"}' >&3
	$place/concord verify cpu:0 --minutes 1.5 --out results 3>&- &
	until [ "$(readlink /proc/$!/exe)" = $place/concord ] && readlink /proc/$!/fd/* | grep -q report.json; do sleep 0.01; done
	mv $place/script $place/concord && rm results/report.json
	exec 3>&-
	wait $!
	status=$? results=results said=
	[ $status = 1 ] || fail "status $status"
	holds '.over and all(.steps[]; .state == "not here" or .state == "not run" or .passed + .failed + (.rates | length) == 0 or
		(.endings | length == 1 and .[0].state == "crashed" and (.[0].check | length > 0)))'
	holds '[.steps[] | select(.endings)] | length >= 7'
	holds '[.steps[] | select(.endings and .passed + (.rates | length) > 1)] | length >= 4'
	holds 'all(.steps[]; .failed == 0)'
	clean
}

in_ended() {
	results=results said=
	for whom in all parent; do
		rm -rf results/*
		./concord verify cpu:0 --minutes 1 --out results &
		pid=$!
		until [ "$(jq '[.steps[] | select(.passed > 0)] | length' results/report.json 2>/dev/null || echo 0)" -ge 3 ]; do sleep 0.2; done
		read -r children </proc/$pid/task/$pid/children
		# shellcheck disable=SC2086
		[ $whom = parent ] && kill -9 $pid || kill -9 $pid $children
		wait $pid
		holds '(.over | not) and (.ok | not) and ([.steps[] | select(.passed > 0)] | length >= 3)'
		says 'did not come to its end'
		gone
	done
	run cpu:0 results 0.3 --only failed # goes on where the killed one was
	holds '.over and all(.steps[]; .failed == 0 and .endings == null)'
}

in_planted() {
	results=results
	said=$(/planted verify cpu:0 --minutes 0.5 --only first --out results 2>&1)
	status=$?
	echo "$said"
	[ $status = 1 ] || fail "status $status"
	holds '.steps[1].step == "first" and any(.steps[1].failures[]; .name | test("saxpy.*f32"))'
	holds '(.ok | not) and all(.steps[1].failures[]; .name | test("saxpy.*f32"))'
	says 'FAILED'
}

in_nonvrtc() {
	mkdir /bare && cp /sim/libcuda.so.1 /bare && export CONCORD_SIM_DIR=/bare
	run sim-cuda:0 results 0.4 --only first,search
	[ $status = 1 ] || fail "status $status"
	holds '[.steps[1:][] | select(.passed > 0)] == []'
	says NVRTC
	says 'what helps: '
	clean
}

in_oldnvrtc() {
	mkdir /old && cp /sim/libcuda.so.1 /old
	sed 's/nvrtcGetProgramLogSize/nvrtcGetXXXXXXXLogSize/g' /sim/libnvrtc.so.11.2 >/old/libnvrtc.so.11.2
	export CONCORD_SIM_DIR=/old
	run sim-cuda:0 results 0.4 --only first,search
	[ $status = 1 ] || fail "status $status"
	holds '[.steps[1:][] | select(.passed > 0)] == []'
	says nvrtcGetProgramLogSize
	says 'what helps: '
	clean
}

in_cuda13() {
	export CONCORD_SIM_DIR=/sim/new
	run sim-cuda:0 results 0.5 --only first,quantized
	[ $status = 0 ] || fail "status $status"
	holds 'all(.steps[]; .failed == 0 and .passed > 0 and .endings == null) and .about.info.arch == "sm_90"'
	holds '[.about.libraries[] | select(.version | startswith("13."))] | length >= 3'
	clean
}

in_newarch() {
	export CONCORD_SIM_ARCH=103
	run sim-cuda:0 results 0.4 --only first,quantized
	[ $status = 0 ] || fail "status $status"
	holds 'all(.steps[]; .failed == 0 and .passed > 0 and .endings == null) and .about.info.arch == "sm_103"'
	clean
}

in_memory() {
	export CONCORD_SIM_MEMORY=8 # MiB
	run sim-cuda:0 results 1 --only first,search,endurance
	[ $status = 1 ] || fail "status $status"
	holds '.over and all(.steps[]; .endings == null and .passed > 0)'
	holds '[.steps[] | .failures // [] | .[].reason] | length > 0 and all(test("out of memory|can never fit"))'
	clean
}

in_space() {
	ulimit -d 250000 # not -v, since memory that is only reserved is no memory
	run cpu:0 results 0.5 --only first,training,search
	[ $status = 1 ] || fail "status $status"
	# Whether the memory runs out in a process's own allocation, which ends it, or in one that is an error, is chance.
	holds 'any(.steps[]; any((.endings // [])[].words, (.failures // [])[].reason; test("memory|pthread_create")))'
	holds '.over and any(.steps[]; .step == "search" and .passed > 0)'
	clean
}

in_nodevice() {
	run cuda:0 results 7
	[ $status = 1 ] && [ $took -lt 10 ] || fail "status $status, $took s"
	holds '.steps[0].state == "no device" and all(.steps[1:][]; .state == "not run" and .passed == 0)'
	says "install NVIDIA's driver"
	says 'NOT OPENED'
	clean
}

in_disk() {
	mkdir /small && mount -t tmpfs -o size=8k tmpfs /small
	run cpu:0 /small 0.4
	[ $status = 1 ] && [ $took -lt 10 ] || fail "status $status, $took s"
	says /small
	says 'no space left'
	run cpu:0 "$PWD/none" 0.4
	[ $status = 1 ] && [ $took -lt 10 ] || fail "status $status, $took s"
	says "$PWD/none"
	says 'read-only'
	umount /small
	results=results clean
}

in_again() {
	run cpu:0 "results/of a user" 0.2
	[ $status = 0 ] || holds 'any(.steps[]; .state == "not run")'
	lists
	run cpu:0 "results/of a user" 0.2 --only quantized,search
	lists
	holds 'all(.steps[]; (.step | IN("device", "search", "quantized")) != (.earlier // false))'
	results=results clean
}

# What follows puts the machine together.

# The bundle at /bundle, read-only except for its folder results; the simulated libraries at /sim; and a
# compiler that only they know: the one of the host, whose root is /host. Both have the same /tmp.
export bundle sim
prepare='
	for at in bundle sim; do
		mkdir "$root/$at" && mount --bind "${!at}" "$root/$at" && mount -o remount,bind,ro "$root/$at"
	done
	cp build/planted "$root/planted"
	mkdir -p "$root/kept" && mount --bind "$sim/compiled" "$root/kept"
	mkdir -p "$root/host" && mount --rbind / "$root/host" && mount --bind "$root/tmp" "$root/host/tmp"
	mount -t tmpfs results "$root/bundle/results"
	mkdir -p "$root/opt" && printf "#!/bin/sh\nexec chroot /host env -C \"\$PWD\" g++ \"\$@\"\n" >"$root/opt/compiler" && chmod +x "$root/opt/compiler"
	chroot "$root" chown -R "$as" /bundle/results /home/newcomer
	cp "$dir/case.sh" "$root/case.sh"
'
environment=(GOMAXPROCS=16 CONCORD_CPU_THREADS=16 CONCORD_SIM_DIR=/sim CONCORD_SIM_COMPILED=/kept CONCORD_SIM_COMPILER=/opt/compiler)
homeless=1 place=/bundle spaces=--net limit=200

# one NAME USER WHAT...: runs a case and prints its row.
one() {
	local name=$1 dir=$work/$1 start=$SECONDS status verdict=passed
	as=$2
	shift 2
	mkdir "$dir" && { echo 'failed=0'; declare -f; echo "in_$name; [ \$failed = 0 ] || cat \"\$results/report.md\"; exit \$failed"; } >"$dir/case.sh"
	inside "$dir" "$lower" "$prepare" "bash /case.sh" >"$work/$name.out" 2>&1
	status=$?
	[ $status = 0 ] || verdict="FAILED: $(grep -c ^REHEARSAL: "$work/$name.out") of what it should show, status $status"
	printf '%-9s %3d s  %-75s %s\n' "$name" $((SECONDS - start)) "$*" "$verdict" | tee -a "$work/rows"
	# What it should have shown and what the report says of failures comes again at the end, under the row.
	[ $status = 0 ] || {
		grep -hE '^(REHEARSAL:|\| |\* FAILED|\* ENDED)' "$work/$name.out" | cut -c 1-300 | head -n 40 | sed 's/^/    /' >>"$work/rows"
		tail -n 60 "$work/$name.out" | sed 's/^/    /'
	}
	rm -rf --one-file-system "$dir"
	[ $status = 0 ]
}

needs_root gpu-rehearsal
[ -d build/sim ] || skip gpu-rehearsal "it needs make sim"
. /etc/os-release
sim=$PWD/build/sim
mkdir -p "$sim/compiled"
lower=$(lowers "$VERSION_CODENAME" ocl-icd-libopencl1,pocl-opencl-icd,jq) || exit 1
work=$(mktemp -d "$base/rehearsal.XXXXXX") || exit 1
trap 'rm -rf --one-file-system "$work"' EXIT
bundle=$work/bundle
cp -r build/gpu "$bundle" && mkdir "$bundle/results" || exit 1
# The script unpacks the program where it lies.
sh "$bundle/run.sh" cpu:0 "$work/first" 0.2 --only device >"$work/rows" || { cat "$work/rows"; exit 1; }
: >"$work/rows"

wanted=$(while read -r name rest; do
	for w in "${@:-$name}"; do
		[ -z "$name" ] || [ "$w" != "$name" ] || echo "$name" "$rest"
	done
done <<<"$cases")
[ -n "$wanted" ] || { echo "rehearse.sh: no case of these: $*"; exit 2; }
running=0
while read -r line; do
	[ $running -lt 2 ] || wait -n
	# shellcheck disable=SC2086
	one $line &
	running=$((running + 1))
done <<<"$wanted"
wait
printf '\n%s\n' "$(cat "$work/rows")"
[ "$(grep -c ' passed$' "$work/rows")" = "$(wc -l <<<"$wanted")" ]
