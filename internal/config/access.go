package config

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"chorus/internal/pattern"
	"chorus/internal/permit"
	"chorus/internal/suggest"
)

// Grant gives a permission profile to whoever To names.
type Grant struct{ To, Profile string }

// Channel is what applies in the channels that its name matches.
type Channel struct {
	Name        string // as written; "*" stands for any characters
	Permissions string
	Pinned      bool // it comes from a pin in the channel in question, and Name is the message
}

// Label names the channel for people.
func (c Channel) Label() string {
	if c.Pinned {
		return "the " + c.Name
	}
	return "channel " + c.Name
}

// Means reports whether it matches one of a channel's names. A name matches
// literally, except that "*" stands for any characters.
func (c Channel) Means(names ...string) bool {
	if c.Pinned {
		return true
	}
	parts := strings.Split(c.Name, "*")
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	whole := regexp.MustCompile(`(?s)\A` + strings.Join(parts, ".*") + `\z`)
	return slices.ContainsFunc(names, whole.MatchString)
}

// somebody is how access and editors name people: anyone, a kind, one of a kind, a role, a role of one kind.
var somebody = pattern.Lazy(`^(?:anyone|(?:local|discord|token|schedule|task|agent|system)(?::\S.*|/role:\S.*)?|role:\S.*)$`)

const somebodyForms = "anyone, a kind (local, discord, token, schedule, task, agent), one of a kind (discord:123), role:NAME or discord/role:NAME"

// access reads who has which rights. A wrongly written name is an error:
// that person would have no rights, or somebody else's.
func (b *Bot) access(r *report) {
	for _, name := range b.merged.names("access") {
		to, at := unescape(name), "access."+name
		if !somebody().MatchString(to) {
			r.fail(b.Origin(at), at, "access: %q is nobody; there are %s", to, somebodyForms)
		} else if b.named(r, at, "access of "+to) {
			b.Access = append(b.Access, Grant{to, b.text(at)})
		}
	}
	if b.IsSet("accessDefault") {
		b.named(r, "accessDefault", "accessDefault")
	}
	for _, to := range b.Editors {
		if !somebody().MatchString(to) {
			r.fail(b.Origin("editors"), "editors", "editors: %q is nobody; there are %s", to, somebodyForms)
		}
	}
	for _, dir := range b.Workspaces {
		if !filepath.IsAbs(dir) && dir != "~" && !strings.HasPrefix(dir, "~/") {
			r.fail(b.Origin("workspaces"), "workspaces", "workspaces: %q is neither an absolute path nor one that begins with ~/", dir)
		}
	}
	for _, name := range b.merged.names("channels") {
		if name == "allow" || name == "deny" { // these are lists of channels, not channels
			continue
		}
		if at := "channels." + name + ".permissions"; b.named(r, at, "permissions of channel "+unescape(name)) {
			b.Channels = append(b.Channels, Channel{Name: unescape(name), Permissions: b.text(at)})
		}
	}
}

// pinnedLimit treats a profile that a pin names as one more limit of the channel:
// whoever may pin can take rights away there but cannot give any.
func (b *Bot) pinnedLimit(r *report, l leaf) {
	profile := l.value.text
	_, own := b.Profiles[profile]
	switch {
	case profile == "open" && !own:
		r.warn(l.at, l.path, "permissions: a pin can only take rights away, and open takes none away")
	case !own && !permit.IsPreset(profile):
		known := append(permit.Presets(), slices.Sorted(maps.Keys(b.Profiles))...)
		r.warn(l.at, l.path, "permissions: there is no profile %q; there are %s%s", profile, strings.Join(known, ", "), suggest.Hint(profile, known))
	default:
		b.Channels = append(b.Channels, Channel{Name: l.at.File, Permissions: profile, Pinned: true})
		b.pinned = append(b.pinned, l)
	}
}

// named accepts only profiles that have names: what limits people
// must not be a file that somebody may remove.
func (b *Bot) named(r *report, at, what string) bool {
	profile := b.text(at)
	if _, own := b.Profiles[profile]; own || permit.IsPreset(profile) {
		return true
	}
	known := append(permit.Presets(), slices.Sorted(maps.Keys(b.Profiles))...)
	r.fail(b.Origin(at), at, "%s: there is no profile %q; there are %s%s", what, profile, strings.Join(known, ", "), suggest.Hint(profile, known))
	return false
}
