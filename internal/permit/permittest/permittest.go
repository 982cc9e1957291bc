// Package permittest has the commands that permission decisions are tested and timed with. It promises that
// the timed ones do not change, so that measurements from different days can be compared.
package permittest

import (
	"strconv"
	"strings"
)

// Everyday is a command of 200 characters as agents write them.
const Everyday = "cd src && go test -race -count=1 ./internal/permit/... 2>&1 | grep -v '^ok' | head -n 50 > /tmp/out.txt; " +
	"git status --short && git diff --stat HEAD~1 -- internal/permit docs/README.md | tail -5 || true"

// Size is the minimum length of each script in Scripts, in bytes.
const Size = 10 << 10

// Scripts returns scripts of 10 KB by kind. Their lines differ wherever a repeated line would save work.
func Scripts() map[string]string {
	out := map[string]string{}
	for kind, line := range map[string]string{
		"everyday":  Everyday + "\n",
		"variables": "for f in a b c d#; do X=$f; Y=${X:-z}; cp \"$X\" $Y/$f && grep -n# \"$X\" \"$Y\" | tee -a log.$f; done\n",
		"nested":    `bash -c 'env A=# timeout 5 sh -c "echo $(date) > out; ls | xargs -n1 wc"'` + "\n",
		"remote":    `ssh host 'cd /srv && ls -la'; docker exec app sh -c "ls; cat x#"` + "\n",
	} {
		var script strings.Builder
		for i := 0; script.Len() < Size; i++ {
			script.WriteString(strings.ReplaceAll(line, "#", strconv.Itoa(i)))
		}
		out[kind] = script.String()
	}
	return out
}
