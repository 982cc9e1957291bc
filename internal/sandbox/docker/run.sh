# Runs one command inside: reports that it has started, waits for "go", runs the command,
# ends what outlived it, and reports how it ended. A caller that gives up before "go" closes
# our input, so nothing is run for a caller that has gone.
# sweep.sh must come before it. The reports go to every stream that is read.
chorus_token=$1 chorus_merge=$2 chorus_stdin=$3 chorus_kind=$4
chorus_exec=$5 chorus_call=$6 chorus_sum=$7 chorus_names=$8
shift 8

[ "$chorus_merge" = 1 ] && exec 2>&1
exec 3>&2 2>/dev/null # without the shell's own messages about the end of a child

chorus_say() {
	echo "$chorus_token $*"
	[ "$chorus_merge" = 1 ] || echo "$chorus_token $*" >&3
}

# chorus_find NAME: whether exec would find a program of that name.
chorus_find() {
	case $1 in
	-*) return 1 ;;
	*/*) [ -f "$1" ] && [ -x "$1" ] && return 0 || return 1 ;;
	esac
	IFS=:
	for chorus_dir in $PATH; do
		[ -f "${chorus_dir:-.}/$1" ] && [ -x "${chorus_dir:-.}/$1" ] && return 0
	done
	return 1
}

chorus_run() (
	exec 2>&3 3>&-
	export TERM=dumb PAGER=cat GIT_PAGER=cat GIT_TERMINAL_PROMPT=0 PYTHONUNBUFFERED=1 PWD
	# The values are passed under other names, so that none of them can affect the docker
	# program outside. The names were checked: letters, digits, underscores.
	for chorus_name in $chorus_names; do
		eval "export $chorus_name=\"\$CHORUS_V_$chorus_name\"; unset CHORUS_V_$chorus_name"
	done
	export CHORUS_EXEC="$chorus_exec"
	[ -n "$chorus_call" ] && export CHORUS_CALL="$chorus_call" CHORUS_CALL_SUM="$chorus_sum"
	if [ "$chorus_kind" = shell ]; then
		(chorus_find bash) && exec bash -c "$1"
		exec sh -c "$1"
	fi
	(chorus_find "$1") || {
		echo "$chorus_token none"
		exit 127
	}
	exec "$@"
)

chorus_read /proc/$$/stat
chorus_born() { chorus_since=${20}; }
chorus_born ${chorus_text##*) }
chorus_say start $$ "${chorus_since:-0}"
read -r chorus_go && [ "$chorus_go" = go ] || exit 125

# A signal to the whole group is for the command; children get the default handling back.
trap : HUP INT QUIT PIPE TERM USR1 USR2
if [ "$chorus_stdin" = 1 ]; then chorus_run "$@"; else chorus_run "$@" </dev/null; fi
chorus_code=$?

# Give processes that end by themselves a moment (a tee behind a pipe).
chorus_took= chorus_seen= chorus_left=0 chorus_stuck=0 chorus_try=0
chorus_scan "CHORUS_EXEC=$chorus_exec" $$ "${chorus_since:-0}"
while [ -n "$chorus_new" ] && [ $chorus_try -lt 5 ]; do
	sleep 0.05 || break
	chorus_try=$((chorus_try + 1))
	chorus_scan "CHORUS_EXEC=$chorus_exec" $$ "${chorus_since:-0}"
done
[ -n "$chorus_new" ] && chorus_sweep "CHORUS_EXEC=$chorus_exec" $$ "${chorus_since:-0}"
chorus_say end $chorus_code $chorus_left $chorus_stuck
exit $chorus_code
