# Turns a login into an agent. It becomes the gompirun at the path where ours is, else the one that
# an earlier job has left in the user's cache, else one that it asks for and reads from standard
# input. Its arguments are the path (empty to skip that), the build that is wanted, the kind of
# machine that it runs on, the name to give it, its size, and the flag that makes it an agent. It
# says how it goes in lines that begin as ctl.Magic does.
#
# Login shells of all kinds read it as one word in single quotes, without these comments and with
# spaces for the ends of lines: csh takes no newline there, it and bash no exclamation mark, fish
# no backslash before a backslash.
m=$(uname -m);
[ "$m" = "$3" ] || { printf "\000gompi machine %s\n" "$m"; exit 0; };
[ -f "$1" ] && [ -x "$1" ] && exec "$1" "$6" "$2";
build=$2; name=$4; size=$5; role=$6; mask=$(umask);
umask 077;
set -f;
exec 3>&1;

# place puts gompirun where $to says, in the folder $own of this user, if it is not there. What
# goes wrong is on its standard output. Others may be doing the same in a folder that hosts share.
# In /tmp it is the folder of the sockets of jobs, too, which stay however old they are.
place() {
	mkdir -p "$own/$build" || return;
	for dir in "$own" "$own/$build"; do
		[ -h "$dir" ] && { echo "$dir: a symbolic link"; return 1; };
		[ -O "$dir" ] || { echo "$dir: not owned by user $(id -u)"; return 1; };
		case $(ls -ld "$dir") in
			(d????-??-*) ;;
			(*) echo "$dir: others can write it, want chmod go-w"; return 1 ;;
		esac;
	done;
	[ -x "$to" ] && { touch -c "$own/$build" 2>/dev/null; return 0; };
	find "$own" -mindepth 1 -maxdepth 1 -type d -mtime +30 -exec rm -rf {} + 2>/dev/null;
	new=$(mktemp "$own/$build/$(uname -n).XXXXXX") || return;
	chmod 700 "$new" && fill && mv -f "$new" "$to" && return;
	rm -f "$new";
	return 1;
};

# fill has gompirun sent into $new. All that is sent is read, also when it cannot be written.
fill() {
	[ -x "$new" ] || { echo "nothing may be executed there (mounted noexec)"; return 1; };
	printf "\000gompi want\n" >&3;
	head -c "$size" | (cat >"$new"; wrote=$?; cat >/dev/null; exit $wrote) || return;
	[ "$(wc -c <"$new")" -eq "$size" ] || { echo "only $(wc -c <"$new") of $size bytes came"; return 1; };
};

for own in "${XDG_CACHE_HOME:-$HOME/.cache}" "${TMPDIR:-/tmp}"; do
	own=$own/gompi-$(id -u); to=$own/$build/$name;
	said=$(place 2>&1) && { umask "$mask"; exec 3>&-; exec "$to" "$role" "$build"; };
	set -- $said;
	all="$all; $own: $*";
done;
echo "no folder to put gompirun in, of HOME and TMPDIR: ${all#; }" >&2;
exit 1
