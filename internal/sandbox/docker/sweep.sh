# Finds and kills a process tree with only a shell and /proc: containers
# often have no pgrep, no setsid and no grep that reads NUL. Every name begins with
# chorus_, because the environment of the container is not ours.

# chorus_read FILE: its text in chorus_text. Shells drop NUL, so the entries of an
# environment run together; the text that is searched for has a fixed length.
chorus_read() {
	chorus_text=
	while IFS= read -r chorus_line || [ -n "$chorus_line" ]; do
		chorus_text=$chorus_text$chorus_line
	done <"$1"
}

# chorus_scan MARK LEADER SINCE: sets chorus_new to the processes that started at SINCE or later and
# carry MARK, are in LEADER's group or session, or are children of one that was found. Never this shell.
chorus_scan() {
	chorus_mark=$1 chorus_leader=$2 chorus_since=$3 chorus_new=
	for chorus_p in /proc/[0-9]*; do
		chorus_p=${chorus_p#/proc/}
		[ "$chorus_p" = $$ ] && continue
		case " $chorus_took " in *" $chorus_p "*) continue ;; esac
		chorus_read "/proc/$chorus_p/stat"
		# After the name, which may contain anything: state parent group session … born.
		set -- ${chorus_text##*) }
		[ $# -ge 20 ] || continue
		case $1 in [ZX]) continue ;; esac
		[ "${20}" -ge "$chorus_since" ] || continue
		chorus_ours=
		case " $2 $3 $4 " in *" $chorus_leader "*) chorus_ours=1 ;; esac
		case " $chorus_took $chorus_new " in *" $2 "*) chorus_ours=1 ;; esac
		if [ -z "$chorus_ours" ]; then
			case " $chorus_seen " in *" $chorus_p:${20} "*) continue ;; esac
			chorus_read "/proc/$chorus_p/environ"
			case $chorus_text in
			*"$chorus_mark"*) ;;
			*)
				chorus_seen="$chorus_seen $chorus_p:${20}"
				continue
				;;
			esac
		fi
		chorus_new="$chorus_new $chorus_p"
	done
}

# chorus_sweep MARK LEADER SINCE: first stops them all, so that none can fork away or
# continue its script when its child dies, and then kills them. chorus_left is how
# many were killed, chorus_stuck how many could not be.
chorus_sweep() {
	chorus_took= chorus_seen= chorus_left=0 chorus_stuck=0 chorus_round=0
	while [ $chorus_round -lt 64 ]; do
		chorus_scan "$@"
		[ -n "$chorus_new" ] || break
		kill -STOP $chorus_new
		chorus_took="$chorus_took$chorus_new"
		chorus_round=$((chorus_round + 1))
	done
	for chorus_p in $chorus_took; do
		if kill -KILL "$chorus_p"; then
			chorus_left=$((chorus_left + 1))
		elif [ -d "/proc/$chorus_p" ]; then
			chorus_stuck=$((chorus_stuck + 1))
		fi
	done
}
