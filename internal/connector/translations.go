package connector

import (
	_ "embed" // for the table
	"strings"
	"sync"

	"chorus/internal/platform"
)

//go:embed translations.tsv
var translationTable string

// translations are the words of commands in other languages, by their English ones: one per line
// of the table, whose first line names the languages as platforms do.
var translations = sync.OnceValue(func() map[string]map[string]string {
	out := map[string]map[string]string{}
	lines := strings.Split(strings.TrimSpace(translationTable), "\n")
	languages := strings.Split(lines[0], "\t")
	for _, line := range lines[1:] {
		words := strings.Split(line, "\t")
		in := map[string]string{}
		for i, word := range words[1:] {
			in[languages[1+i]] = word
		}
		out[words[0]] = in
	}
	return out
})

// translated adds the words of other languages to a command, its options and its subcommands. Words
// that are not in the table, such as those of added commands, are shown in English everywhere.
func translated(c platform.Command) platform.Command {
	c.Names, c.Descriptions = translations()[c.Name], translations()[c.Description]
	options := make([]platform.Option, len(c.Options))
	for i, o := range c.Options {
		o.Names, o.Descriptions = translations()[o.Name], translations()[o.Description]
		options[i] = o
	}
	subs := make([]platform.Command, len(c.Sub))
	for i, sub := range c.Sub {
		subs[i] = translated(sub)
	}
	c.Options, c.Sub = options, subs
	return c
}
