#!/bin/sh
# Chorus at work for a minute, in a repository made for the occasion. The model is the
# offline one that follows a script; the tools, the journal and the gate are real.
set -eu

chorus=${CHORUS:-bin/chorus}
pause=${PAUSE-1}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export CHORUS_HOME="$dir/home"
mkdir "$dir/repo"
cd "$dir/repo"

bold='' faint='' plain='' color=never
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
	bold=$(printf '\033[1m') faint=$(printf '\033[2m') plain=$(printf '\033[0m') color=always
fi
show() { printf '\n%s$ %s%s\n' "$bold" "$*" "$plain"; sleep "$pause"; }
say() { printf '\n%s# %s%s\n' "$faint" "$*" "$plain"; sleep "$pause"; }

git init -q .
cat >greet.sh <<'END'
#!/bin/sh
echo "Helo, ${1:-world}!"
END
chmod +x greet.sh
git add . && git -c user.name=demo -c user.email=demo@example.org commit -q -m "Greet"

say "A question. The agent looks, changes a file, and tries what it did."
show 'chorus run -y "The greeting is misspelt. Mend it and show that it works."'
"$chorus" run -y -m demo/script <<'END'
The greeting is misspelt. Mend it and show that it works.
```demo
slow 25ms
say I will look for the greeting first.
call search_files {"query":"Helo"}
end
say There it is. One letter is missing.
call edit {"path":"greet.sh","old_string":"Helo","new_string":"Hello"}
end
say Now let me see whether it works.
call bash {"command":"./greet.sh Chorus","description":"try the greeting"}
end
say Done: `greet.sh` says **Hello** now, and I have run it. (I am the offline model that plays a script; the tools were real.)
```
END

say "What it changed:"
show git diff
git --no-pager diff --color="$color"

say "Not everything is allowed. How a command would be judged, and why:"
show "chorus permit explain --rules guarded 'go test ./... && git push'"
"$chorus" permit explain --rules guarded 'go test ./... && git push'

say "Every word of it is in the journal:"
show chorus thread list
"$chorus" thread list

say "That was all. Talk to it yourself: make chat, or make run for the web page"
