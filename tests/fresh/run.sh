#!/usr/bin/env bash
# run.sh CASE...: runs the README's commands on an unprepared machine: Debian's minimal system with
# only the packages that a case names, in a mount namespace of its own, with empty caches. Only Go
# and the settings of package managers are those of the host machine. root.sh says what it needs;
# without that it says so and succeeds.
#
#	tests/fresh/run.sh demo      what continuous integration runs
#	tests/fresh/run.sh all       every case
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
. tests/fresh/root.sh
goroot=$(go env GOROOT) || exit 1

# A case is a line: its name, the release of Debian, the packages on top of the minimal
# system with commas between them, and the functions that prepare it and judge it. The case
# bare has a compiler without the C library's headers.
cases="
demo       bookworm g++    plain      concords
test       bookworm g++    plain      passes
trixie     trixie   g++    plain      concords
gcc        bookworm gcc,libc6-dev plain uncompiled
bare       bookworm gcc    plain      uncompiled
clang      bookworm clang  plain      concords
nocompiler bookworm -      plain      uncompiled
nocgo      bookworm g++    nocgo      uncompiled
user       bookworm g++    user       concords
space      bookworm g++    space      concords
readonly   bookworm g++    readonly   concords
nohome     bookworm g++    nohome     concords
umask      bookworm g++    umask      concords
group      bookworm g++    group      concords
locale     bookworm g++    locale     concords
"

# Functions that prepare a case: the checkout's folder and whether it is writable, the user, the
# environment variables.
for_plain() { :; }
for_user() { as=newcomer; }
for_space() { checkout="/home/newcomer/my code/concord"; }
for_readonly() { as=newcomer sealed=1; }
for_nocgo() { environment+=(CGO_ENABLED=0); }
for_nohome() { homeless=1; }
for_umask() { mask=077; }
for_group() { as=newcomer mask=002; }
for_locale() { environment+=(LANG=tr_TR.UTF-8 LC_ALL=tr_TR.UTF-8); }

# Functions that judge the output of a case, besides its exit status. A quiet build prints no
# warning, and its first lines say what is being done.
quiet() {
	! grep -n 'warning:' "$1" || { echo "the build prints warnings"; return 1; }
}
concords() {
	quiet "$1" && grep -q '^ *cpu:0 .*concords' "$1" && grep -q 'cpu:0 (compiled).*concords' "$1"
}
uncompiled() { # the catalog runs, and one sentence says why the portable text does not
	quiet "$1" && grep -q '^ *cpu:0 .*concords' "$1" && grep -q 'Not run: cpu:0 (compiled): .*\(compiler\|cgo\)' "$1"
}
passes() { grep -q '^ok ' "$1" && ! grep -q '^FAIL' "$1"; }

needs_root fresh

# The checkout, and the Go of the host.
export goroot checkout sealed tarball
prepare='
	mkdir -p "$root/usr/local/go" "$root$checkout"
	mount --bind "$goroot" "$root/usr/local/go" && mount -o remount,bind,ro "$root/usr/local/go"
	cp /etc/resolv.conf /etc/hosts "$root/etc/"
	tar -xf "$tarball" -C "$root$checkout"
	mount --bind "$root$checkout" "$root$checkout"
	chroot "$root" chown -R "$as" /home/newcomer
	[ -z "$sealed" ] || mount -o remount,bind,ro "$root$checkout"'

# Settings of Go that are taken from the host: where modules come from.
settings() {
	go env | sed -n "s/^\(GOPROXY\|GOSUMDB\|GONOSUMDB\|GOPRIVATE\|GONOPROXY\|GOINSECURE\|GOAUTH\)='\(.*\)'$/\1=\2/p"
	env | grep -iE '^(https?|no|all)_proxy='
}

# one NAME RELEASE PACKAGE PREPARE JUDGE
one() {
	local name=$1 release=$2 package=$3 dir start=$SECONDS lower status verdict=passed
	lower=$(lowers "$release" "$package") || { echo "fresh: $name: not made"; return 1; }
	mapfile -t environment < <(settings)
	command="make demo" checkout=/home/newcomer/concord as=root sealed='' homeless='' mask=022
	[ "$5" != passes ] || command="make test"
	"for_$4"
	dir=$(mktemp -d "$base/$name.XXXXXX") && tarball=$dir/checkout.tar || return 1
	git -c safe.directory="*" ls-files -co --exclude-standard -z | tar --null --verbatim-files-from -T - -cf "$tarball" || return 1
	start=$SECONDS
	place=$checkout inside "$dir" "$lower" "$prepare" "$command" 2>&1 | tee "$base/$name.out"
	status=${PIPESTATUS[0]}
	rm -rf "$dir"
	[ "$status" = 0 ] || verdict="FAILED: exit status $status"
	[ "$verdict" != passed ] || "$5" "$base/$name.out" || verdict="FAILED: the output is not what it should be ($5)"
	printf 'fresh: %-10s %s, %s: %d s, %s\n' "$name" "$release" "$package" $((SECONDS - start)) "$verdict" | tee -a "$base/summary"
	[ "$verdict" = passed ]
}

[ $# -gt 0 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d'; exit 2; }
: >"$base/summary" || exit 1
failed=0 known=0
while read -r name rest; do
	[ -n "$name" ] || continue
	for wanted in "$@"; do
		if [ "$wanted" = all ] || [ "$wanted" = "$name" ]; then
			known=$((known + 1))
			# shellcheck disable=SC2086
			one "$name" $rest <&- || failed=$((failed + 1))
			break
		fi
	done
done <<<"$cases"
[ $known -gt 0 ] || { echo "fresh: no case of these: $*"; exit 2; }
echo && cat "$base/summary"
[ $failed = 0 ]
