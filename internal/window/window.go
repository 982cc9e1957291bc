// Package window decides what part of a long conversation a model is shown.
//
// It is one pure rule. From the messages, the number that arrived since the last roll, and the
// limits, it computes where the window begins, which pictures stay and where the lasting cache
// mark goes. It cuts only whole messages, never between a call and its result, and never down to
// nothing. It cuts only in big steps: a growing window is left alone until a roll is due, so that
// providers' caches stay valid.
package window

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits are a window's limits; 0 means no limit, except where noted.
type Limits struct {
	Messages   int   // kept by a roll
	Characters int   // kept by a roll
	HardMax    int   // characters; beyond it a roll is due at once
	Threshold  int   // messages between two rolls; at least 1
	Images     int   // newest pictures to show
	ImageBytes int64 // total bytes of those

	Age time.Duration // messages older than this are left out, in steps

	CacheImages bool // pictures may come before the lasting cache mark; otherwise a roll leaves them out there
	Mark        int  // one more than the index of the item with that mark; 0 if there is none yet
}

// Item is one message as the rule sees it.
type Item struct {
	Text   string // what was said, if relevant for hiding
	Size   int    // characters that count
	Age    time.Duration
	Images []int64
	Own    bool // said by the agent itself; several in a row count as one
	Result bool // answers calls of the item before it, and stays with it
	Heard  bool // said in the room but not to the agent, so it may be hidden
	Faced  bool // somebody reacted with the dotted face
}

// Plan says what to show.
type Plan struct {
	From    int  // the first item shown
	Rolled  bool // From moved; the count of messages starts over
	Images  int  // how many of the newest pictures are shown; all if Dimmed is false
	Dimmed  bool // some pictures are replaced by words
	Because string
}

// Build computes the plan. since is the number of messages that arrived after the last roll.
func Build(items []Item, since int, l Limits) Plan {
	p := Plan{}
	count, size := measure(items)
	over := l.Characters > 0 && size > l.Characters || l.Messages > 0 && count > l.Messages
	switch {
	case l.HardMax > 0 && size > l.HardMax:
		if l.Characters == 0 || l.Characters > l.HardMax {
			l.Characters = l.HardMax
		}
		p.From, p.Rolled = suffix(items, l), true
		p.Because = fmt.Sprintf("%d characters are more than the limit of %d", size, l.HardMax)
	case over && since >= max(l.Threshold, 1):
		p.From, p.Rolled = suffix(items, l), true
		p.Because = fmt.Sprintf("%d messages with %d characters, %d messages after the last roll", count, size, since)
	}
	if p.From == 0 {
		p.Rolled, p.Because = false, ""
	}
	if from := expired(items, l.Age); from > p.From {
		left, _ := measure(items[:from])
		p.From, p.Rolled = from, true
		p.Because = fmt.Sprintf("%d %s older than %s", left, plural(left, "message is", "messages are"), Period(l.Age))
	}
	all := 0
	for _, it := range items[p.From:] {
		all += len(it.Images)
	}
	p.Images = newest(items[p.From:], l)
	if p.Rolled && !l.CacheImages {
		p.Images = min(p.Images, behindMark(items[p.From:], l.Mark-1-p.From))
	}
	if p.Dimmed = p.Images < all; p.Dimmed && p.Because == "" {
		p.Because = fmt.Sprintf("%d pictures are more than are shown", all)
	}
	return p
}

// ageStep is the part of a window's age that a roll removes in addition to what is too
// old. With a window of 24 hours the beginning of the prompt moves at most once an
// hour, and a provider's cache stays valid in between.
const ageStep = 24

// expired returns where the window begins if nothing in it is older than age, or 0 if
// nothing is. What expires within the next step is removed with it.
func expired(items []Item, age time.Duration) int {
	if age <= 0 || !slices.ContainsFunc(items, func(it Item) bool { return it.Age > age }) {
		return 0
	}
	from, start := 0, 0
	for i, it := range items {
		if it.Age > age-age/ageStep {
			from = i + 1
		}
	}
	for i := range items {
		if joined(items, i) || items[i].Result {
			continue
		}
		if start = i; i >= from {
			break
		}
	}
	return start
}

// Period formats a length of time as people write it: 24h, 90m, 45s.
func Period(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// measure counts messages and characters. Consecutive messages of the agent count as one.
func measure(items []Item) (count, size int) {
	for i, it := range items {
		size += it.Size
		if !joined(items, i) {
			count++
		}
	}
	return count, size
}

// joined reports whether the item belongs to the message before it.
func joined(items []Item, i int) bool {
	return i > 0 && items[i].Own && items[i-1].Own
}

// suffix returns where the longest end that fits the limits begins.
func suffix(items []Item, l Limits) int {
	count, size, from := 0, 0, len(items)
	for i := len(items) - 1; i >= 0; i-- {
		size += items[i].Size
		if !joined(items, i) {
			count++
		}
		if l.Characters > 0 && size > l.Characters || l.Messages > 0 && count > l.Messages {
			break
		}
		if !joined(items, i) && !items[i].Result {
			from = i
		}
	}
	if from < len(items) {
		return from
	}
	// Not even the newest fits: show it anyway, with what belongs to it.
	for i := len(items) - 1; i > 0; i-- {
		if !joined(items, i) && !items[i].Result {
			return i
		}
	}
	return 0
}

// newest returns how many pictures fit, starting with the newest.
func newest(items []Item, l Limits) int {
	n, bytes := 0, int64(0)
	for i := len(items) - 1; i >= 0; i-- {
		for k := len(items[i].Images) - 1; k >= 0; k-- {
			bytes += items[i].Images[k]
			if l.Images > 0 && n == l.Images || l.ImageBytes > 0 && bytes > l.ImageBytes {
				return n
			}
			n++
		}
	}
	return n
}

// behindMark counts the pictures after the lasting cache mark, or after its new
// place if the roll removed it. They are in no prefix that lasts.
func behindMark(items []Item, mark int) int {
	if mark < 0 {
		mark = Mark(len(items))
	}
	n := 0
	for _, it := range items[min(mark, len(items)):] {
		n += len(it.Images)
	}
	return n
}

// markDistance is how far before the end the lasting cache mark is placed.
const markDistance = 20

// Mark returns where to place the lasting cache mark in a window of n messages.
// It stays with its message until a roll removes that.
func Mark(n int) int { return max(0, n-markDistance) }

// Hidden reports whether words are meant for people only: they begin with a dot, or somebody
// reacted with the dotted face. Only words that were merely heard can be hidden.
func Hidden(it Item) bool {
	return it.Faced || it.Heard && strings.HasPrefix(strings.TrimSpace(afterReply(it.Text)), ".")
}

// afterReply returns the text without its reply mark.
func afterReply(text string) string {
	text = strings.TrimSpace(text)
	if rest, ok := strings.CutPrefix(text, "<reply:"); ok {
		if _, rest, ok = strings.Cut(rest, ">"); ok {
			return rest
		}
	}
	return text
}

// IsFace reports whether a reaction hides a message, by sign or by name.
func IsFace(emoji string) bool {
	return emoji == "\U0001FAE5" || strings.Trim(emoji, ":") == "dotted_line_face"
}

// Clip shortens a message's text to limit characters and adds a note about what is missing; 0 means no limit.
func Clip(text string, limit int) string {
	n := utf8.RuneCountInString(text)
	if limit <= 0 || n <= limit {
		return text
	}
	cut := 0
	for i := range text {
		if limit == 0 {
			cut = i
			break
		}
		limit--
	}
	return fmt.Sprintf("%s\n[cut here: the message has %d characters, %d are shown]", text[:cut], n, utf8.RuneCountInString(text[:cut]))
}

// Attachment returns a text file as the model reads it, cut to max bytes; 0 means no limit.
func Attachment(name, text string, max int) string {
	mark := ""
	if max > 0 && len(text) > max {
		for max > 0 && !utf8.RuneStart(text[max]) {
			max--
		}
		text, mark = text[:max], " [truncated]"
	}
	name = strings.NewReplacer(`"`, "'", "<", "(", ">", ")", "\n", " ").Replace(name)
	text = strings.ReplaceAll(text, "</attachment>", "</ attachment>")
	return fmt.Sprintf("<attachment filename=%q%s>\n%s\n</attachment>", name, mark, strings.TrimRight(text, "\n"))
}
