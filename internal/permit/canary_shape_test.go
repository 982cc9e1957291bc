package permit

import (
	"regexp"
	"strings"
	"sync"

	"chorus/internal/permit/permittest"
)

// Untrusted commands around the name of a denied program. In a template % is any command, ^ a
// simple one, @ a command as one quoted word.

// spellings are ways to write the name so that a shell still starts it.
var spellings = []string{
	`canary`, `c""anary`, `\canary`, `'canary'`, `"canary"`, `$'\x63anary'`, `$'\143anary'`, `{canary,}`, `can*`, `can[a]ry`, `c?nary`, `$X`, `"$X"`, `${X}`,
	`${X:-b}`, `${Y:-canary}`, `${X:+canary}`, `$(echo canary)`, "`echo canary`", `$(printf can)ary`, "can\\\nary", `${Z//x/c}`, `${Z/#x/c}`, `"${A[0]}"`,
	`"${A[@]}"`, `${A[@]:0:1}`, `"$@"`, `$1`, `"$*"`, `../bin/canary`, `"$B"/canary`, `${X,,}`, `${!R}`, `$(cat canary-name)`, `$(tr x c <<< xanary)`, `${X%%z*}`,
	`c$()anary`, `c${Y}anary`, "c``anary", `$"canary"`, `can{a,}ry`, `${X@Q}`, `{c,}anary`, `~+/../bin/canary`,
}

// before sets the variables that spellings use.
const before = "X=canary Z=xanary R=X B=$PWD/../bin; A=(canary b); set -- canary; "

var tails = []string{``, ` a`, ` -x 'b c'`, ` "$X"`, ` >out`, ` 2>&1`, ` </dev/null`, ` a b >> out 2>/dev/null`, ` <<< x`}

// heads take a simple command.
var heads = []string{
	`env ^`, `env -i PATH="$PATH" ^`, `env -u Q ^`, `env A=b C=d ^`, `env -- ^`, `env -C . ^`, `nohup ^`, `nice ^`, `nice -n 5 ^`, `timeout 1 ^`,
	`timeout -k 1 -s KILL 1 ^`, `command ^`, `command -p ^`, `exec ^`, `exec -a x ^`, `setsid -w ^`, `stdbuf -oL ^`, `builtin command ^`, `builtin eval ^`,
	`find . -maxdepth 0 -exec ^ \;`, `find . -maxdepth 0 -exec ^ {} +`, `echo a | xargs ^`, `echo a | xargs -n1 -I{} ^ {}`, `xargs ^ < /dev/null`, `Q=1 ^`,
	`time ^`, `time -p ^`, `! ^`, `coproc ^`, `eval ^`, `sudo ^`, `sudo -u me -E ^`, `ssh host ^`, `ssh -p 22 host ^`, `ssh host -p 22 ^`, `docker exec c ^`,
	`docker run --rm img ^`, `docker run --rm -v a:b img ^`, `kubectl exec pod -- ^`, `busybox ^`, `poetry run ^`, `flock f ^`, `>out ^`, `2>/dev/null ^`,
	`exec 3>&1 ^`, `Q=$( ^ )`, `bash -c '"$@"' _ ^`, `bash -c '$0' ^`, `xargs -a <(echo a) ^`, `xargs --replace=Q ^ <<< x`, `trap ^ EXIT`, `nice timeout 1 env ^`,
}

// quoters take a command as one word.
var quoters = []string{
	`bash -c @`, `sh -c @`, `bash -ec @ a b`, `bash -o pipefail -c @`, `bash -O extglob -c @`, `bash -c -- @`, `bash --norc -c @`, `bash +x -c @`, `eval @`,
	`eval -- @`, `trap @ EXIT`, `trap -- @ 0`, `trap @ DEBUG; :`, `trap @ ERR; false`, `echo @ | sh`, `echo @ | bash -s`, `printf '%s' @ | bash`, `bash <<< @`,
	`bash /dev/stdin <<< @`, `bash -s <<< @`, `. /dev/stdin <<< @`, `bash <(echo @)`, `. <(echo @)`, `BASH_ENV=<(echo @) bash -c :`, `env -S @`,
	`env -iS 'PATH=../bin' @`, `find . -maxdepth 0 -exec sh -c @ \;`, `xargs -I{} sh -c @ <<< x`, `echo @ | xargs -I{} sh -c {}`, `echo @ | xargs -0 sh -c`,
	`ssh host @`, `X=@; eval "$X"`, `X=@; $X`, `Q=@; bash -c "$Q"`, `Q=@ bash -c 'eval "$Q"'`, `export Q=@; sh -c 'eval "$Q"'`, `echo @ > f; . ./f`,
	`echo @ > f; bash f`, `echo @ > f; sh ./f`, `echo @ > f; source f`, `echo @ | tee f; bash f`, `mapfile -C @ -c 1 q <<< x`, `git -c alias.x='!'@ x`,
	`git -c core.pager=@ --paginate version`, `GIT_PAGER=@ git --paginate version`, `PAGER=@ git -p help`, `perl -e 'system shift' @`, `awk 'BEGIN{system(ARGV[1])}' @`,
	`echo | sed "1e "@`, `python3 -c 'import os,sys; os.system(sys.argv[1])' @`, `watch @`, `su -c @`, `flock f -c @`, `compgen -C @`, `printf -v 'q[$(eval '@')]' x`,
	`alias zz=@; eval zz`, `PS4='$(eval "$Q")' Q=@ bash -xc :`, `q=@; echo ${q@P}`, `f() { eval @; }; f`, `while read -r l; do $l; done <<< @`,
	`read -r q <<< @; $q`, `docker run --entrypoint sh img -c @`, `docker exec c sh -c @`, `ENV=<(echo @) sh -ic :`, `busybox sh -c @`, `bash -c "$(echo @)"`,
	`base64 <<< @ | base64 -d | sh`, `IFS=, ; q=@; $q`, `PROMPT_COMMAND=@ bash -ic :`, `command eval @`, `coproc bash -c @`, `let 'q[$(eval '@')]'`,
	`echo @ | while read -r l; do eval "$l"; done`, `awk -v c=@ 'BEGIN{c | getline}'`, `sort --compress-program=@ /dev/null`, `xargs bash -c <<< @`,
}

// frames take any command.
var frames = []string{
	`( % )`, `{ %; }`, `if %; then :; fi`, `if :; then %; fi`, `if false; then :; else %; fi`, `% && :`, `: && %`, `false || %`, `:; %`, `while %; do break; done`,
	`for i in 1; do %; done`, `for ((i=0;i<1;i++)); do %; done`, `case x in x) % ;; esac`, `f() { %; }; f`, `function g { %; }; g`, `f() ( % ); f`, `echo $( % )`,
	"q=`%`", `q=$( % ); :`, `cat <( % )`, `: > >( % )`, "cat <<E\n$( % )\nE", `cat <<< "$( % )"`, `[[ -n $( % ) ]]`, `[ -n "$( % )" ]`, `((q[$( % )0]))`,
	`% & wait`, `q=($( % ))`, `: ${q:-$( % )}`, `: "${q:=$( % )}"`, `exec 3< <( % )`, `% | cat`, `: | %`, `: |& %`, `coproc { %; }; wait`, `time { %; }`, `! { %; }`,
	`echo $(( $( % ) + 0 ))`, `declare q=$( % )`, `export q="$( % )"`, `select i in a; do %; break; done <<< 1`, `case $( % ) in *) ;; esac`, `{ %; } > out`,
	`for i in $( % ); do :; done`, "%\n:", "# x\n%", `(( 1 )) && %`, `true "$( % )"`, `until ! %; do break; done`, `eval "$(echo :)"; %`, `trap "$( % )" EXIT`,
	`: {a,$( % )}`, `: <<< $( % )`, `echo "a $( echo "b $( % )" )"`, `unset -f canary; %`, `canary() { :; }; unset -f canary; %`, `shopt -s expand_aliases; %`,
}

// wholes are commands that fit no template.
var wholes = []string{
	`declare -n q=X; $q`, `${X:0:3}ary`, `eval "${A[*]}"`, `printf -v q %s canary; $q`, `read q <<< canary; $q`, `mapfile -t q <<< canary; "${q[@]}"`,
	`while IFS= read -r q; do "$q"; done <<< canary`, `hash -p ../bin/canary zz; zz`, `cd ../bin; ./canary`, `cd ../bin && . ./canary`, `../bin/can*`, `. ../bin/canary`,
	`find ../bin -name 'can*' -exec {} \;`, `find ../bin -name 'can*' | xargs -I{} {}`, `echo ../bin/can* | sh`, `$(find ../bin -name 'c*y')`, `bash ../bin/canary`,
	`sh < ../bin/canary`, `cat ../bin/canary | sh`, `awk '{system($0)}' canary-name`, `xargs -I{} {} < canary-name`, `xargs -a canary-name env`, `env $(cat canary-name)`,
	`xargs env < canary-name`, `cat canary-name | xargs -n1 timeout 1`, `f() { "$@"; }; f canary`, `f() { $1; }; f canary`, `X=canary bash -c '$X'`, `bash -c '$0' canary`,
	`bash -c '"$@"' _ canary`, `exec 3<canary-name; read q <&3; $q`, `bash < canary-name`, `. ./canary-name`, `bash canary-name`, `source canary-name`, `sh -s < canary-name`,
	`ssh host < canary-name`, `echo canary | ssh host`, `git -c alias.x='!canary' x`, `git -c alias.x='!f() { canary; }; f' x`, `GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='!canary' git x`,
	`git -c core.pager=canary -p version`, `git config --global alias.x '!canary'; git x`, `echo '[alias]x=!canary' > .gitconfig; git x`, `git --exec-path=../bin canary`,
	`PATH=../bin zz; canary`, `BASH_ENV=canary-name bash -c :`, `ENV=canary-name sh -ic :`, `f() { canary; }; export -f f; bash -c f`, `env 'BASH_FUNC_zz%%=() { canary; }' bash -c zz`,
	`trap '$X' EXIT`, `trap "$X" DEBUG; :`, `PROMPT_COMMAND=canary bash -ic :`, `PS1='$(canary)' bash -ic :`, `alias zz=canary; shopt -s expand_aliases; eval zz`,
	`command_not_found_handle() { canary; }; zz`, `zz() { canary; }; zz`, `exec {fd}> >(canary)`, `: $((q[$(canary)0]))`, `[[ q[$(canary)0] -eq 0 ]]`, `test -v 'q[$(canary)]'`,
	`unset 'q[$(canary)]'`, `printf -v 'q[$(canary)]' x`, `read 'q[$(canary)]' <<< x`, `declare 'q[$(canary)]=1'`, `q='a[$(canary)]'; echo $((q))`, `q='a[$(canary)]'; ((q))`,
	`q='a[$(canary)]'; [[ $q -eq 0 ]]`, `q='a[$(canary)]'; for ((i=q;i<1;i++)); do :; done`, `q='$(canary)'; echo "${q@P}"`, `declare -i q='a[$(canary)]'`, `q='a[$(canary)]'; echo ${X:q}`,
	`q='a[$(canary)]'; echo ${A[q]}`, `q='a[$(canary)]'; let q`, `compgen -C canary z`, `compgen -W '$(canary)'`, `mapfile -C canary -c1 q <<< x`, `coproc canary`, `time -p canary`,
	`! canary`, `{ canary; } 2>&1 | cat`, `if canary; then :; fi`, `canary&`, `canary|cat`, `cat<(canary)`, `sed -n '1e canary' canary-name`, `sed 's/.*/canary/e' canary-name`,
	`sed '1!d;e canary' canary-name`, `sed -e '$!d' -e 'e canary' canary-name`, `sed 's/x*/canary/ge' canary-name`, `perl -e 'exec "canary"'`, "perl -e '`canary`'", `awk 'BEGIN { "canary" | getline }'`,
	`awk 'BEGIN { print "x" | "canary" }'`, `awk -f - <<< 'BEGIN{system("canary")}'`, `find . -maxdepth 0 -exec env canary \;`, `find . -maxdepth 0 -execdir canary \;`,
	`stdbuf -o0 canary`, `setsid canary`, `env -S'canary'`, `env -S 'Q=1 canary'`, `env --split-string='canary'`, `env -vS canary`, `timeout --foreground 1 canary`, `nice -5 canary`,
	`xargs -P1 -I Q bash -c Q <<< canary`, `xargs -d '\n' bash -c <<< canary`, `echo 'x; canary' | xargs -I{} sh -c 'echo {}'`, `sort --compress-program=canary -S 1k canary-name`,
	`find . -name canary -exec sh -c '$(basename $1)' _ {} \;`, `for i in can*; do $i; break; done`, `set -- can*; $1`, `"$(ls can* 2>/dev/null || echo can*ry)"`,
	`eval $(echo canary)`, `eval "\c\anary"`, `bash -c "c"anary`, `bash -c can''ary`, `c=can; ${c}ary`, `c=can; a=ary; $c$a`, `IFS=x; q=canaryx; $q`, `q=(can ary); IFS=; "${q[*]}"`,
}

// reaching finds what could touch anything outside the directory of the run: such
// commands of the corpus are judged, but never run.
var reaching = regexp.MustCompile(`(?:^|[^.\w])/[a-z?]|\brm\b|~|/dev/tcp|\bgit push\s+&`)

// shapes are the corpus's ways to hide "git push", with the canary instead.
var shapes = sync.OnceValue(func() []string {
	var out []string
	cases, err := permittest.Corpus()
	if err != nil {
		panic(err) // TestCorpus reports it
	}
	for _, k := range cases {
		if c := strings.ReplaceAll(k.Command, "git push", "canary"); c != k.Command && !reaching.MatchString(c) {
			out = append(out, c)
		}
	}
	return out
})

// chooser turns bytes into choices, so that a fuzzer's change is another command; only
// what is in the lists above is ever run.
type chooser struct{ data []byte }

func (c *chooser) pick(n int) int {
	if len(c.data) == 0 {
		return 0
	}
	b := int(c.data[0])
	c.data = c.data[1:]
	return b % n
}

func (c *chooser) from(list []string) string { return list[c.pick(len(list))] }

// build makes a command from bytes: first what is hidden, then what is put around it.
func build(data []byte) string {
	c := &chooser{data}
	var cmd string
	simple := true
	switch c.pick(4) {
	case 3:
		cmd, simple = c.from(shapes()), false
	case 2:
		cmd, simple = c.from(wholes), false
	default:
		cmd = c.from(spellings) + c.from(tails)
	}
	for range c.pick(4) {
		cmd, simple = wrapped(c, cmd, simple)
	}
	return before + cmd
}

func wrapped(c *chooser, cmd string, simple bool) (string, bool) {
	switch kind := c.pick(3); {
	case kind == 0 && simple:
		head := c.from(heads)
		// After "^ \;" or a pipe nothing may be put in front of it.
		return strings.Replace(head, "^", cmd, 1), strings.HasSuffix(head, " ^") && !strings.ContainsAny(head, "|!=>$")
	case kind <= 1:
		// The inner shell does not have this one's variables.
		return strings.Replace(c.from(quoters), "@", "'"+strings.ReplaceAll(before+cmd, "'", `'\''`)+"'", 1), false
	default:
		return strings.Replace(c.from(frames), "%", cmd, 1), false
	}
}

// plainSeeds contain every entry of every list at least once.
func plainSeeds() [][]byte {
	var out [][]byte
	for i := range spellings {
		out = append(out, []byte{0, byte(i), 0, 0})
	}
	for i := range tails {
		out = append(out, []byte{0, 0, byte(i), 0})
	}
	for i := range heads {
		out = append(out, []byte{0, 0, 0, 1, 0, byte(i)})
	}
	for i := range quoters {
		out = append(out, []byte{0, 0, 0, 1, 1, byte(i)})
	}
	for i := range frames {
		out = append(out, []byte{0, 0, 0, 1, 2, byte(i)})
	}
	for i := range wholes {
		out = append(out, []byte{2, byte(i), 0})
	}
	for i := range shapes() {
		out = append(out, []byte{3, byte(i), 0})
	}
	return out
}
