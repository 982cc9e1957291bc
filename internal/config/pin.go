package config

import (
	"slices"
	"strings"
)

// Pin is a pinned message that may contain configuration.
type Pin struct {
	ID     string // of the message, for people who look for it
	Text   string
	Parent bool // it is pinned in a parent channel
}

// largestPin is more than any platform lets people pin.
const largestPin = 16 << 10

// splitPin splits a `.config [targets]` message: the first line begins with .config, the second is
// ---, and something follows. Anything else is not configuration, however similar.
func splitPin(text string) (targets, yaml string, ok bool) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	head, rest, more := strings.Cut(text, "\n")
	targets, isConfig := strings.CutPrefix(head, ".config")
	if !isConfig || !more || targets != "" && targets[0] != ' ' && targets[0] != '\t' {
		return "", "", false
	}
	line, body, more := strings.Cut(rest, "\n")
	if strings.TrimRight(line, " \t") != "---" || !more || strings.TrimSpace(body) == "" {
		return "", "", false
	}
	return strings.TrimSpace(targets), body, true
}

// For reports whether a pin is configuration for a bot of one of these names.
func (p Pin) For(names ...string) bool {
	targets, _, ok := splitPin(p.Text)
	return ok && addressed(targets, names...)
}

// addressed reports whether a pin's targets name the bot. No targets mean everybody; otherwise
// its name or inner name is one of the words, or all of them together.
func addressed(targets string, names ...string) bool {
	if targets == "" {
		return true
	}
	words := append(strings.Fields(targets), targets)
	return slices.ContainsFunc(words, func(word string) bool {
		word = strings.TrimPrefix(word, "@")
		return slices.ContainsFunc(names, func(name string) bool { return name != "" && strings.EqualFold(word, name) })
	})
}

// readPin returns a pin's leaves. A pin with a mistake is left out as a whole, and the mistakes are
// reported as warnings: people in a channel must not be able to stop the bot.
func readPin(r *report, pin Pin, names ...string) []leaf {
	targets, body, ok := splitPin(pin.Text)
	if !ok || !addressed(targets, names...) {
		return nil
	}
	layer, file := ChannelPin, "pinned message"
	if pin.Parent {
		layer = ParentPin
	}
	if pin.ID != "" {
		file += " " + pin.ID
	}
	if len(body) > largestPin {
		r.warn(Place{Layer: layer, File: file}, "", "the pin is left out: longer than %d bytes", largestPin)
		return nil
	}
	own := &report{}
	leaves := shape(own, layer, nil, parse(own, file, layer, []byte(body)))
	for _, p := range own.found {
		p.Place.Line += 2 // the two lines before the YAML
		if !p.Warning {
			p.Warning, p.Text = true, "the pin is left out: "+p.Text
			leaves = nil
		}
		r.found = append(r.found, p)
	}
	for i := range leaves {
		leaves[i].at.Line += 2
	}
	return leaves
}
