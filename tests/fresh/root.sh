# Functions that put together the root of an unprepared machine, for scripts of bash that source
# this file: Debian's minimal system with only the packages that a test names, in namespaces of its
# own. They need root, debootstrap and a kernel that allows mount namespaces: needs_root says so and
# ends the script with success where one is missing. Systems are kept in $base, in the cache
# directory, outside of the checkout, because the go command reads every folder of the checkout; a
# system that is removed there is made again.
base=${XDG_CACHE_HOME:-$HOME/.cache}/concord-fresh
sources=/etc/apt/sources.list.d/debian.sources

# needs_root NAME
needs_root() {
	skip() { echo "$1: skipped: $2"; exit 0; }
	[ "$(id -u)" = 0 ] || skip "$1" "it needs root"
	command -v debootstrap >/dev/null || skip "$1" "it needs debootstrap"
	unshare --mount true 2>/dev/null || skip "$1" "no mount namespaces here"
	[ -e $sources ] || skip "$1" "it takes the package settings from $sources"
	mkdir -p "$base" || exit
	find "$base" -maxdepth 1 -name '*.??????' -mmin +600 -exec rm -rf --one-file-system {} + # of runs that were killed
}

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

# lowers RELEASE PACKAGE: makes both, and prints the layers of the system with these packages; "-" is none.
lowers() {
	release "$1" >&2 || { echo "no $1" >&2; return 1; }
	[ "$2" != - ] || { echo "$base/$1"; return; }
	layer "$1" "$2" >&2 || { echo "no $2" >&2; return 1; }
	echo "$base/$1+${2//,/+}:$base/$1"
}

# inside DIR LOWER PREPARE COMMAND: runs the command by sh as the user $as in the folder $place of
# the root put together in DIR, in namespaces that end with it. PREPARE is run by bash before that,
# where the root is $root; it sees exported variables. $environment has the variables of the
# command; without $homeless HOME is one. $spaces has further options of unshare. $limit is a
# number of seconds after which everything is killed.
inside() {
	export as homeless=${homeless:-} mask=${mask:-022} place
	${limit:+timeout --signal=KILL $limit} unshare --mount --pid --fork --kill-child --mount-proc ${spaces:-} bash -euc '
		dir=$0 lower=$1 prepare=$2 command=$3 root=$0/root
		shift 3
		mkdir -p "$root" "$dir/upper" "$dir/work"
		mount -t overlay overlay -o "lowerdir=$lower,upperdir=$dir/upper,workdir=$dir/work" "$root"
		mount -t proc proc "$root/proc"
		mount -t sysfs -o ro sysfs "$root/sys"
		mount --rbind /dev "$root/dev"
		eval "$prepare"
		home=$(chroot "$root" getent passwd "$as" | cut -d: -f6)
		[ -n "$homeless" ] || set -- "HOME=$home" "$@"
		umask "$mask"
		# A change of the user would clear the signal of --kill-child.
		exec chroot "$root" setpriv --pdeathsig KILL --reuid="$as" --regid="$as" --init-groups env -i "$@" \
			PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb \
			sh -c "cd \"\$0\" && exec $command" "$place"
	' "$1" "$2" "$3" "$4" "${environment[@]}" </dev/null
}
