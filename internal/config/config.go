// Package config reads what people configure: the layered YAML files, settings.json, pinned messages, the
// environment and flags. Only app and cmd know it; all other packages get values.
//
// It promises that every value can say where it came from (layer, file, line), that a mistake is an error
// with its place and the key that was meant, that all mistakes are reported at once, and that one reading
// never mixes two versions of the files. Nothing here changes a file except the import of a Chapter3
// installation.
//
// One table ([Keys]) describes every key; parsing, ranges, environment variables, the JSON
// Schema, the reference page and `config show` are all derived from it.
package config

import (
	"fmt"
	"strings"
)

// Layer says where a value came from. A later one wins.
type Layer int

// The layers, weakest first. settings.json is read at the level of shared.yaml, which wins over it.
const (
	BuiltIn Layer = iota
	SettingsFile
	Shared
	Guild
	GuildSettings // what `/settings` wrote for the guild
	Definition    // of a built-in agent
	BotFile
	BotGuild
	AgentFile // agent.json
	ParentPin
	ChannelPin
	Environment
	Flag
)

var layerNames = [...]string{"built in", "settings.json", "shared", "guild", "guild settings", "built-in agent", "bot", "bot and guild", "agent.json",
	"pin of a parent channel", "pin", "environment", "flag"}

// String returns the name that people see.
func (l Layer) String() string {
	if l < 0 || int(l) >= len(layerNames) {
		return fmt.Sprintf("layer %d", int(l))
	}
	return layerNames[l]
}

// outside reports whether the layer is written by people other than the operator. Such a
// layer sees no variables and no files, and may not set every key.
func (l Layer) outside() bool {
	return l == GuildSettings || l == AgentFile || l == ParentPin || l == ChannelPin
}

// Place is where a value is written.
type Place struct {
	Layer  Layer
	File   string // a path; the name of a variable or flag; "pin 123"; "" for built-in values
	Line   int    // from 1; 0: the source has no lines
	Column int
}

// String returns file:line:column, as far as known.
func (p Place) String() string {
	switch {
	case p.File == "":
		return p.Layer.String()
	case p.Line == 0:
		return p.File
	default:
		return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	}
}

// Problem is one thing that is wrong with what was read.
type Problem struct {
	Warning bool // false: the version cannot be used
	Place   Place
	Key     string // the key's path, "" if it is not about one
	Text    string // the sentence
}

// Error returns the sentence with its place in front.
func (p Problem) Error() string {
	if p.Place == (Place{}) {
		return p.Text
	}
	return p.Place.String() + ": " + p.Text
}

// Problems are everything that was found, in the order of the files.
type Problems []Problem

// Errors returns those that make the configuration unusable.
func (ps Problems) Errors() Problems { return ps.only(false) }

// Warnings returns the others.
func (ps Problems) Warnings() Problems { return ps.only(true) }

func (ps Problems) only(warning bool) Problems {
	var out Problems
	for _, p := range ps {
		if p.Warning == warning {
			out = append(out, p)
		}
	}
	return out
}

// Err returns nil, or one error with every error's sentence on its own line.
func (ps Problems) Err() error {
	if errs := ps.Errors(); len(errs) > 0 {
		return errs
	}
	return nil
}

// Error joins the sentences.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// report collects problems while something is read.
type report struct{ found Problems }

func (r *report) fail(at Place, key, format string, args ...any) {
	r.found = append(r.found, Problem{Place: at, Key: key, Text: fmt.Sprintf(format, args...)})
}

func (r *report) warn(at Place, key, format string, args ...any) {
	r.found = append(r.found, Problem{Warning: true, Place: at, Key: key, Text: fmt.Sprintf(format, args...)})
}
