package chat

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"chorus/internal/pattern"
	"chorus/internal/text"
)

// HookTransport is the transport of threads in which hooks run.
const HookTransport = "hook"

// WorkTransport is the transport of threads in which tasks are worked on.
const WorkTransport = "work"

// DefaultAgent answers when no agent is named.
const DefaultAgent = "chorus"

// ThreadID names one conversation with one agent: transport:place:thread@agent.
// The place may contain slashes but no colon. The thread may contain colons. The
// agent follows the last "@" and may be missing.
type ThreadID string

var (
	transportName = pattern.Lazy(`^[a-z][a-z0-9-]{0,30}$`)
	agentName     = pattern.Lazy(`^[a-z0-9][a-z0-9-]{0,30}[a-z0-9]$`)
)

// ValidAgentName reports whether s can name an agent: 2 to 32 characters of
// a–z, 0–9 and hyphens, with no hyphen at either end.
func ValidAgentName(s string) bool { return agentName().MatchString(s) }

// homeNames are the folders that Chorus itself uses in the home
// directory. No transport may have one of these names.
var homeNames = map[string]bool{
	"agents": true, "blobs": true, "cache": true, "config": true, "events": true, "locks": true,
	"logs": true, "outputs": true, "projects": true, "skills": true, "template": true, "tools": true,
}

// maxThreadID is the longest id in bytes; platforms' own ids are far shorter.
const maxThreadID = 1024

// NewThreadID joins the four parts and checks them.
func NewThreadID(transport, place, thread, agent string) (ThreadID, error) {
	s := transport + ":" + place + ":" + thread
	if agent != "" {
		s += "@" + agent
	}
	id, err := ParseThreadID(s)
	if err != nil {
		return "", err
	}
	if t, p, th, a := id.Parts(); t != transport || p != place || th != thread || a != agent {
		return "", fmt.Errorf("thread id %q: a part contains a separator", s)
	}
	return id, nil
}

// ParseThreadID checks that s is a thread id.
func ParseThreadID(s string) (ThreadID, error) {
	bad := func(why string) (ThreadID, error) {
		return "", fmt.Errorf("thread id %q: %s (want transport:place:thread@agent)", text.Clip(s, 80), why)
	}
	if len(s) > maxThreadID {
		return bad(fmt.Sprintf("longer than %d bytes", maxThreadID))
	}
	if !utf8.ValidString(s) {
		return bad("not valid UTF-8")
	}
	transport, rest, ok := strings.Cut(s, ":")
	if !ok {
		return bad("no colon")
	}
	if !transportName().MatchString(transport) {
		return bad("the transport must be lower-case letters, digits and hyphens")
	}
	if homeNames[transport] {
		return bad("the transport has the name of a folder that Chorus uses itself")
	}
	place, thread, ok := strings.Cut(rest, ":")
	if !ok || place == "" {
		return bad("no place")
	}
	if bare, _ := splitAgent(thread); bare == "" {
		return bad("no thread")
	}
	return ThreadID(s), nil
}

// Parts splits an id into its parts. For an id that does not parse, they are empty strings.
func (t ThreadID) Parts() (transport, place, thread, agent string) {
	transport, rest, ok := strings.Cut(string(t), ":")
	if !ok {
		return "", "", "", ""
	}
	place, thread, ok = strings.Cut(rest, ":")
	if !ok {
		return "", "", "", ""
	}
	thread, agent = splitAgent(thread)
	return transport, place, thread, agent
}

func splitAgent(thread string) (bare, agent string) {
	if i := strings.LastIndexByte(thread, '@'); i >= 0 && ValidAgentName(thread[i+1:]) {
		return thread[:i], thread[i+1:]
	}
	return thread, ""
}

// OnPlatform reports whether the thread is on a chat platform, and
// not in a terminal, a browser or a hook's run.
func (t ThreadID) OnPlatform() bool { return OnPlatform(t.Transport()) }

// OnPlatform reports whether a transport is a chat platform.
func OnPlatform(transport string) bool {
	return transport != "" && transport != "cli" && transport != "web" && transport != HookTransport && transport != WorkTransport
}

// Transport, Place, Thread and Agent return the parts by name.

func (t ThreadID) Transport() string { a, _, _, _ := t.Parts(); return a }
func (t ThreadID) Place() string     { _, a, _, _ := t.Parts(); return a }
func (t ThreadID) Thread() string    { _, _, a, _ := t.Parts(); return a }
func (t ThreadID) Agent() string     { _, _, _, a := t.Parts(); return a }

// Dir returns the thread's folder below the home directory, with forward slashes:
// transport/place/thread. Each segment is safe on every file system.
func (t ThreadID) Dir() string {
	transport, place, thread, agent := t.Parts()
	if agent != "" {
		thread += "@" + agent
	}
	return path.Join(transport, EncodeSegment(place), EncodeSegment(thread))
}

// takenNames are names that other files use next to places and threads, and a few that
// Windows reserves. A segment that looks like one is escaped.
var takenNames = map[string]bool{
	"memory.md": true, "skills": true, "log.jsonl": true, "context.jsonl": true, "meta.json": true,
	"attachments": true, "scratch": true, "con": true, "prn": true, "aux": true, "nul": true,
}

// maxSegment stays below the 255 bytes that file systems allow.
const maxSegment = 200

// EncodeSegment turns any text into one path segment. Distinct texts give distinct segments, even
// where the file system ignores case: a text with capitals gets "~" and a short hash appended. A
// text too long for a file name is cut and gets a long hash; only that form cannot be decoded.
func EncodeSegment(s string) string {
	var out strings.Builder
	capitals := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c < 0x20 || c == 0x7f || strings.IndexByte(`/\:*?"<>|%~`, c) >= 0,
			(c == '.' || c == ' ') && (i == 0 || i == len(s)-1),
			c >= 0x80 && !utf8.ValidString(s):
			fmt.Fprintf(&out, "%%%02X", c)
		default:
			capitals = capitals || (c >= 'A' && c <= 'Z') || c >= 0x80
			out.WriteByte(c)
		}
	}
	enc := out.String()
	if enc == "" {
		return "~" // nothing else encodes to a lone tilde
	}
	if takenNames[strings.ToLower(enc)] {
		enc = fmt.Sprintf("%%%02X", enc[0]) + enc[1:]
	}
	sum := sha256.Sum256([]byte(s))
	if len(enc) > maxSegment {
		cut := maxSegment - 70
		for cut > 0 && (enc[cut-1] == '%' || cut > 1 && enc[cut-2] == '%' || !utf8.RuneStart(enc[cut])) {
			cut--
		}
		return enc[:cut] + "~~" + hex.EncodeToString(sum[:])
	}
	if capitals {
		enc += "~" + hex.EncodeToString(sum[:4])
	}
	return enc
}

var errCutSegment = errors.New("the name was too long for a file name and cannot be read back from it")

// DecodeSegment reads what EncodeSegment wrote.
func DecodeSegment(s string) (string, error) {
	if s == "~" {
		return "", nil
	}
	if strings.Contains(s, "~~") {
		return "", fmt.Errorf("decode %q: %w", text.Clip(s, 80), errCutSegment)
	}
	s, _, _ = strings.Cut(s, "~")
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			out.WriteByte(s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", fmt.Errorf("decode %q: a percent sign without two hex digits", text.Clip(s, 80))
		}
		b, err := hex.DecodeString(s[i+1 : i+3])
		if err != nil {
			return "", fmt.Errorf("decode %q: %w", text.Clip(s, 80), err)
		}
		out.WriteByte(b[0])
		i += 2
	}
	return out.String(), nil
}
