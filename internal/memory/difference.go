package memory

import (
	"strings"

	"chorus/internal/untrusted"
)

// nearby is how many unchanged lines are shown before and after changed ones.
const nearby = 2

// maxCompared limits the table of two texts' lines. Beyond it the whole text is shown.
const maxCompared = 4 << 20

// Difference says how a file has changed since a model was shown it. Both texts are as returned by
// Render. Lines stay in their frames, so that nobody's words become somebody else's. "" means that a
// difference is not worthwhile and the whole text should be shown.
func Difference(before, after string) string {
	head, _, _ := strings.Cut(after, "\n")
	old, now := untrusted.Lines(before), untrusted.Lines(after)
	if len(old) == 0 || len(now) == 0 || old[0] != now[0] || len(old)*len(now) > maxCompared {
		return ""
	}
	var out strings.Builder
	out.WriteString(head + "\nIt has changed: lines with - are gone, those with + are new, the others are unchanged.\n")
	for _, part := range hunks(script(old[1:], now[1:])) {
		out.WriteString("…\n")
		for len(part) > 0 { // lines of one source are in one frame
			n := 1
			for n < len(part) && part[n].Source == part[0].Source {
				n++
			}
			var lines []string
			for _, l := range part[:n] {
				lines = append(lines, string(l.sign)+" "+l.Text)
			}
			text := strings.Join(lines, "\n")
			if part[0].Source != "" {
				text = untrusted.Frame(part[0].Source, text)
			}
			out.WriteString(text + "\n")
			part = part[n:]
		}
	}
	if said := strings.TrimSpace(out.String()); len(said) < len(after)*3/4 {
		return said
	}
	return ""
}

// edit is a line of a difference: ' ' stays, '-' is gone, '+' is new.
type edit struct {
	untrusted.Line
	sign byte
}

// script turns the old lines into the new ones with as few edits as possible.
func script(old, now []untrusted.Line) (out []edit) {
	common := make([][]int, len(old)+1) // common[i][j]: lines that old from i and now from j have in common
	for i := range common {
		common[i] = make([]int, len(now)+1)
	}
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(now) - 1; j >= 0; j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); old[i] == now[j] {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	i, j := 0, 0
	for i < len(old) || j < len(now) {
		switch {
		case i < len(old) && j < len(now) && old[i] == now[j]:
			out = append(out, edit{old[i], ' '})
			i, j = i+1, j+1
		case j == len(now) || i < len(old) && common[i+1][j] >= common[i][j+1]:
			out = append(out, edit{old[i], '-'})
			i++
		default:
			out = append(out, edit{now[j], '+'})
			j++
		}
	}
	return out
}

// hunks returns the parts of a script around what changed.
func hunks(all []edit) (out [][]edit) {
	begin, end := -1, -1
	flush := func() {
		if begin >= 0 {
			out = append(out, all[begin:end])
		}
	}
	for i, e := range all {
		if e.sign == ' ' {
			continue
		}
		if from := max(i-nearby, 0); begin < 0 || from > end {
			flush()
			begin = from
		}
		end = min(i+nearby+1, len(all))
	}
	flush()
	return out
}
