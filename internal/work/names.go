package work

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode"
)

// maxID limits ids, because they become folders, branches and parts of addresses.
const maxID = 64

// IDOf makes an id from a name: lower-case letters, digits and single hyphens.
func IDOf(name string) (string, error) {
	id := slug(name)
	if id == "" {
		return "", fmt.Errorf("the name %.40q has neither letters nor digits: give one that has, such as \"web-app\"", name)
	}
	return id, nil
}

// NoteFile returns the file of a note with that title. A title that is already a file name is kept.
func NoteFile(title string) (string, error) {
	name := slug(strings.TrimSuffix(strings.TrimSpace(title), ".md"))
	if name == "" {
		return "", errors.New("Title produces an empty filename: use letters or digits in it")
	}
	return name + ".md", nil
}

// slug keeps what is safe in a file name, a branch and an address on every system.
func slug(text string) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(text) {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			gap = gap || r != '\'' && r != '’'
			continue
		}
		size := len(string(r))
		if gap && b.Len() > 0 {
			size++
		}
		if b.Len()+size > maxID {
			break
		}
		if gap && b.Len() > 0 {
			b.WriteByte('-')
		}
		gap = false
		b.WriteRune(r)
	}
	return b.String()
}

var adjectives = strings.Fields(`able amber bold brave brief bright brisk calm clear clever cosy deep eager early even fair fast fine firm
	fresh gentle glad grand green happy keen kind late light lively lucky mellow merry mild modest neat nimble noble open patient plain polite
	prime proud quick quiet rapid ready ripe round sharp shiny silent simple sleek smart smooth snug soft solid spry steady still strong sunny
	sure swift tidy trim true upbeat vivid warm wide wise witty young`)

var nouns = strings.Fields(`acorn anchor apple badge basil beacon birch bison breeze bridge brook cabin canyon castle cedar cherry cliff cloud
	clover comet copper coral crane creek daisy delta eagle ember falcon fern field finch flame forest fox garden glade grove harbor hawk hazel
	heron hill island ivy jade lagoon lake lark leaf lemon lily linden lotus lynx maple meadow mesa mint moon moss oak olive orbit orchid otter
	owl panda pearl pebble pine plum pond poppy prairie quail quartz raven reef ridge river robin rose sage shore sparrow spruce star stone
	summit swan thistle tiger trail tulip valley violet walnut wave willow wren`)

// TaskID makes an id of two words. After some tries it adds a number, so that it always succeeds.
func TaskID(r *rand.Rand, tries int) string {
	id := adjectives[r.IntN(len(adjectives))] + "-" + nouns[r.IntN(len(nouns))]
	switch {
	case tries < 10:
		return id
	case tries < 40:
		return fmt.Sprintf("%s-%d", id, 10+r.IntN(90))
	default:
		return fmt.Sprintf("%s-%d", id, 1000+r.IntN(9_000_000))
	}
}
