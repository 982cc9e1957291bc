#!/bin/sh
# A dispatcher, a queue and two workers, in a repository made for the occasion: three sentences become four tasks that need each
# other, two of them are worked on at once, one is reviewed, all are merged. The models are the offline one that follows a script;
# the queue, the worktrees, the tools and git are real. SPEED=fast is for tests; KEEP=1 leaves the server running at the end.
set -eu

chorus=${CHORUS:-bin/chorus}
case ${SPEED:-} in
fast) pause=0 slow=1ms ;;
*) pause=${PAUSE-2} slow=${SLOW-120ms} ;;
esac
dir=$(mktemp -d)
server=''
end() {
	[ -z "$server" ] || { kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; }
	rm -rf "$dir"
}
trap end EXIT
trap 'exit 130' INT TERM
export CHORUS_HOME="$dir/home"

bold='' faint='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
	bold=$(printf '\033[1m') faint=$(printf '\033[2m') plain=$(printf '\033[0m')
fi
say() { printf '\n%s# %s%s\n' "$faint" "$*" "$plain"; sleep "$pause"; }
show() { printf '\n%s$ %s%s\n' "$bold" "$*" "$plain"; }

mkdir -p "$dir/site" "$CHORUS_HOME/config"
cd "$dir/site"
git init -q -b main .
printf '<!doctype html>\n<title>Demo</title>\n' >index.html
printf '/* colours */\n' >style.css
git add . && git -c user.name=demo -c user.email=demo@example.org commit -q -m 'Begin'
printf 'model: demo/script\npermissions: open\nworkers: 2\nworkspaces: ["%s"]\n' "$dir" >"$CHORUS_HOME/config/shared.yaml"

: >"$dir/server.out"
"$chorus" serve --addr "${ADDR:-127.0.0.1:0}" >"$dir/server.out" 2>"$dir/server.err" &
server=$!
tries=0
until url=$(sed -n 's/^listening on //p' "$dir/server.out") && [ -n "$url" ]; do
	tries=$((tries + 1))
	if [ "$tries" -gt 600 ] || ! kill -0 "$server" 2>/dev/null; then
		cat "$dir/server.err" >&2
		exit 1
	fi
	sleep 0.1
done
say 'Chorus runs. Watch the board while it works:'
"$chorus" token link --url "$url"
echo "then $url/work"
[ "$pause" = 0 ] || sleep 8

# One sentence to the dispatcher. What stands in the fence is what the offline model does in place of a real one.
tell() {
	printf '\n%s> %s%s\n' "$bold" "$1" "$plain"
	printf '%s\n```demo\n%s\n```\n' "$1" "$2" | "$chorus" run -a dispatcher -m demo/script ${3:-}
	sleep "$pause"
}
# What a task's worker does: it thinks as long as a model would, then writes its files.
work() { printf '```demo\\nslow %s\\nsay %s\\ncall write {\\"path\\":\\"%s\\",\\"content\\":\\"%s\\"}\\nend\\nsay %s\\n```' "$slow" "$1" "$2" "$3" "$4"; }

say 'First sentence: what it is about.'
tell "Make a project called Demo Site of the repository in $dir/site." \
	"call create_project {\"name\":\"Demo Site\",\"repo_url\":\"$dir/site\"}
end
call set_active_project {\"project_id\":\"demo-site\"}
end
say Created project \`demo-site\`."

heading=$(work 'I look at index.html, and put a heading into it that says what the page is for.' index.html '<!doctype html>\\n<title>Demo</title>\\n<link rel=stylesheet href=style.css>\\n<h1>Hello, queue</h1>\\n' 'The page has a heading and loads its style sheet.')
colours=$(work 'The style sheet is nearly empty. I choose colours that can be read in the light and in the dark.' style.css '/* colours */\\n:root { color-scheme: light dark; }\\nh1 { color: seagreen; }\\n' 'The heading is green, in both themes.')
footer=$(work 'The footer goes into a file of its own, so that nobody else is in the way while the colours are made.' footer.html '<footer>Made by two workers at once.</footer>\\n' 'There is a footer.')
check=$(work 'I read what the others did: the heading, the colours and the footer are all there. I write down what I saw.' CHECKED.md '# Checked\\n\\n- heading\\n- colours\\n- footer\\n' 'All three are there; CHECKED.md says so. Please have a look before it is merged.')
say 'Second sentence: what is to be done. It becomes four tasks.'
tell 'The page needs a heading first; then colours and a footer can be made at the same time; at the end somebody checks that all is there, and I want to see that before it is merged.' \
	"call create_task {\"title\":\"Add a heading\",\"description\":\"index.html gets a heading and loads style.css.\n\n$heading\",\"project_id\":\"demo-site\"}
end
call create_task {\"title\":\"Choose colours\",\"description\":\"style.css gets colours for light and dark.\n\n$colours\",\"project_id\":\"demo-site\",\"depends_on\":[\"{{result 1 id}}\"]}
call create_task {\"title\":\"Write a footer\",\"description\":\"footer.html is a footer.\n\n$footer\",\"project_id\":\"demo-site\",\"depends_on\":[\"{{result 1 id}}\"]}
end
call create_task {\"title\":\"Check the page\",\"description\":\"CHECKED.md lists what is there.\n\n$check\",\"project_id\":\"demo-site\",\"depends_on\":[\"{{result 2 id}}\",\"{{result 3 id}}\"],\"requires_approval\":true}
end
say Created four tasks: \`{{result 1 id}}\`, then \`{{result 2 id}}\` and \`{{result 3 id}}\` at the same time, then \`{{result 4 id}}\`, which waits for your yes." --continue

first=$("$chorus" task list --all --json | sed -n 's/^ *"id": "\(.*\)".*/\1/p' | head -1)
show "chorus task watch $first"
"$chorus" task watch "$first"
last=''
tries=0
until last=$("$chorus" task list --status AWAITING_APPROVAL --json | sed -n 's/^ *"id": "\(.*\)".*/\1/p' | head -1) && [ -n "$last" ]; do
	tries=$((tries + 1))
	if [ "$tries" -gt 600 ]; then
		"$chorus" task list --all >&2
		exit 1
	fi
	sleep 0.3
done
show "chorus task tree $first"
"$chorus" task tree "$first"
show "chorus task diff $last"
"$chorus" task diff "$last"

say 'Third sentence: the review.'
tell 'Looks good, ship it.' \
	"call list_tasks {\"project_id\":\"demo-site\",\"status\":\"AWAITING_APPROVAL\"}
end
call approve_task {\"task_id\":\"{{result 1 items.0.id}}\"}
end
say Approved \`{{result 1 items.0.id}}\`." --continue
"$chorus" task watch "$last"

say 'What is on the default branch now:'
show git log --graph --oneline main
git --no-pager log --graph --format='%h %s' main
show ls
git ls-tree --name-only main
if [ "${KEEP:-}" = 1 ]; then
	say "The server goes on at $url; Ctrl-C ends it"
	wait "$server"
fi
