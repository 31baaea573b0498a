#!/usr/bin/env bash
# run.sh CASE...: runs the README's commands on an unprepared machine: Debian's minimal system with
# only the packages that a case names, in a mount namespace of its own, with empty caches. Only Go
# and the settings of package managers are those of the host machine. It needs root, debootstrap and
# a kernel that allows mount namespaces; without them it says so and succeeds. Systems are kept in
# the cache directory, outside of the checkout, because the go command reads every folder of the
# checkout; a system that is removed there is made again.
#
#	tests/fresh/run.sh demo      what continuous integration runs
#	tests/fresh/run.sh all       every case
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
base=${XDG_CACHE_HOME:-$HOME/.cache}/concord-fresh
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
	quiet "$1" && grep -q '^ *cpu:0 .*concords' "$1" && grep -q 'Not here: cpu:0 (compiled): .*\(compiler\|cgo\)' "$1"
}
passes() { grep -q '^ok ' "$1" && ! grep -q '^FAIL' "$1"; }

skip() { echo "fresh: skipped: $*"; exit 0; }
[ "$(id -u)" = 0 ] || skip "it needs root"
command -v debootstrap >/dev/null || skip "it needs debootstrap"
unshare --mount true 2>/dev/null || skip "no mount namespaces here"
sources=/etc/apt/sources.list.d/debian.sources
[ -e $sources ] || skip "it takes the package settings from $sources"

# release NAME: makes Debian's minimal system with everything that the README requires except a
# compiler, and with the host's settings for packages and certificates.
release() {
	local root=$base/$1
	[ -d "$root" ] && return
	rm -rf "$root.part" && mkdir -p "$base" || return
	debootstrap --variant=minbase --include=ca-certificates,git,make "$1" "$root.part" \
		"$(sed -n 's/^URIs: //p' $sources | head -n 1)" >"$base/$1.log" 2>&1 || { tail -n 5 "$base/$1.log"; return 1; }
	cp -r /etc/apt/apt.conf.d /etc/apt/auth.conf.d "$root.part/etc/apt/" &&
		rm -f "$root.part/etc/apt/sources.list" &&
		sed "s/bookworm/$1/g" $sources >"$root.part/etc/apt/sources.list.d/debian.sources" &&
		cp -r /usr/local/share/ca-certificates/. "$root.part/usr/local/share/ca-certificates/" &&
		chroot "$root.part" update-ca-certificates >/dev/null 2>&1 &&
		chroot "$root.part" useradd --create-home newcomer &&
		mv "$root.part" "$root"
}

# layer RELEASE PACKAGE: makes the layer of files that installing the package adds to a release.
layer() {
	local root=$base/$1+${2//,/+} # a comma would end an option of mount
	[ -d "$root" ] && return
	rm -rf "$root.part" "$root.work" "$root.mount" && mkdir -p "$root.part" "$root.work" "$root.mount" || return
	unshare --mount sh -c '
		mount -t overlay overlay -o "lowerdir=$1,upperdir=$2.part,workdir=$2.work" "$2.mount" &&
		mount -t proc proc "$2.mount/proc" && cp /etc/resolv.conf "$2.mount/etc/" &&
		DEBIAN_FRONTEND=noninteractive chroot "$2.mount" sh -c "apt-get update -q && apt-get install -y -q --no-install-recommends $3 && apt-get clean"
	' sh "$base/$1" "$root" "${2//,/ }" >"$root.log" 2>&1 || { tail -n 5 "$root.log"; return 1; }
	rm -rf "$root.work" "$root.mount" && mv "$root.part" "$root"
}

# inside DIR LOWER: runs $command in the root put together in DIR, in namespaces that end
# with it.
inside() {
	export dir=$1 lower=$2 checkout as sealed goroot command mask homeless
	unshare --mount --pid --fork --kill-child --mount-proc bash -euc '
		root=$dir/root
		mount -t overlay overlay -o "lowerdir=$lower,upperdir=$dir/upper,workdir=$dir/work" "$root"
		mount -t proc proc "$root/proc"
		mount -t sysfs -o ro sysfs "$root/sys"
		mount --rbind /dev "$root/dev"
		mkdir -p "$root/usr/local/go" "$root$checkout"
		mount --bind "$goroot" "$root/usr/local/go" && mount -o remount,bind,ro "$root/usr/local/go"
		cp /etc/resolv.conf /etc/hosts "$root/etc/"
		tar -xf "$dir/checkout.tar" -C "$root$checkout"
		mount --bind "$root$checkout" "$root$checkout"
		chroot "$root" chown -R "$as" /home/newcomer
		[ -z "$sealed" ] || mount -o remount,bind,ro "$root$checkout"
		home=$(chroot "$root" getent passwd "$as" | cut -d: -f6)
		[ -n "$homeless" ] || set -- "HOME=$home" "$@"
		umask "$mask"
		exec chroot "$root" setpriv --reuid="$as" --regid="$as" --init-groups env -i "$@" \
			PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb \
			sh -c "cd \"\$0\" && exec $command" "$checkout"
	' bash "${environment[@]}" </dev/null
}

# Settings of Go that are taken from the host: where modules come from.
settings() {
	go env | sed -n "s/^\(GOPROXY\|GOSUMDB\|GONOSUMDB\|GOPRIVATE\|GONOPROXY\|GOINSECURE\|GOAUTH\)='\(.*\)'$/\1=\2/p"
	env | grep -iE '^(https?|no|all)_proxy='
}

# one NAME RELEASE PACKAGE PREPARE JUDGE
one() {
	local name=$1 release=$2 package=$3 dir start=$SECONDS lower status verdict=passed
	release "$release" || { echo "fresh: $name: no $release"; return 1; }
	lower=$base/$release
	if [ "$package" != - ]; then
		layer "$release" "$package" || { echo "fresh: $name: no $package"; return 1; }
		lower=$base/$release+${package//,/+}:$lower
	fi
	mapfile -t environment < <(settings)
	command="make demo" checkout=/home/newcomer/concord as=root sealed='' homeless='' mask=022
	[ "$5" != passes ] || command="make test"
	"for_$4"
	dir=$(mktemp -d "$base/$name.XXXXXX") && mkdir "$dir/root" "$dir/upper" "$dir/work" || return 1
	git -c safe.directory="*" ls-files -co --exclude-standard -z | tar --null --verbatim-files-from -T - -cf "$dir/checkout.tar" || return 1
	start=$SECONDS
	inside "$dir" "$lower" 2>&1 | tee "$base/$name.out"
	status=${PIPESTATUS[0]}
	rm -rf "$dir"
	[ "$status" = 0 ] || verdict="FAILED: exit status $status"
	[ "$verdict" != passed ] || "$5" "$base/$name.out" || verdict="FAILED: the output is not what it should be ($5)"
	printf 'fresh: %-10s %s, %s: %d s, %s\n' "$name" "$release" "$package" $((SECONDS - start)) "$verdict" | tee -a "$base/summary"
	[ "$verdict" = passed ]
}

[ $# -gt 0 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" | sed '$d'; exit 2; }
mkdir -p "$base" && : >"$base/summary" || exit 1
find "$base" -maxdepth 1 -name '*.??????' -mmin +600 -exec rm -rf --one-file-system {} + # of runs that were killed
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
