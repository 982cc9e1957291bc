package discordtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"chorus/internal/sim/discordsim"
)

// guideLine is something that somebody says or orders in a guide, with what is answered.
type guideLine struct {
	line              int
	who, where, words string
	want              []string
}

var (
	saysLine   = regexp.MustCompile(`^(\w+) in ([\w-]+): (.*)$`)
	optionPart = regexp.MustCompile(`(\w+):("[^"]*"|\S*)`)
)

// guideBlocks reads the fenced blocks of one kind.
func guideBlocks(text, kind string) (blocks []string, lines []int) {
	inside := false
	for n, line := range strings.Split(text, "\n") {
		switch {
		case !inside && line == "```"+kind:
			inside = true
			blocks, lines = append(blocks, ""), append(lines, n+2)
		case inside && line == "```":
			inside = false
		case inside:
			blocks[len(blocks)-1] += line + "\n"
		}
	}
	return blocks, lines
}

func readGuide(t *testing.T, text string) []guideLine {
	t.Helper()
	var out []guideLine
	blocks, at := guideBlocks(text, "discord")
	for i, block := range blocks {
		for n, line := range strings.Split(strings.TrimSpace(block), "\n") {
			if rest, ok := strings.CutPrefix(line, "> "); ok && len(out) > 0 {
				out[len(out)-1].want = append(out[len(out)-1].want, rest)
				continue
			}
			parts := saysLine.FindStringSubmatch(line)
			if parts == nil {
				t.Fatalf("line %d is neither said nor an answer: %s", at[i]+n, line)
			}
			out = append(out, guideLine{line: at[i] + n, who: parts[1], where: parts[2], words: parts[3]})
		}
	}
	return out
}

// do says or orders it, and gives what was answered.
func (l guideLine) do(g *guildT) string {
	g.Helper()
	order, ok := strings.CutPrefix(l.words, "/")
	if !ok {
		words := l.words
		if strings.HasPrefix(words, "call ") {
			words += "\nend\nsay {{last}}"
		}
		asked := g.say(l.who, l.where, words)
		g.hasReaction(asked, "✅")
		return g.message("answer", answers(asked)).Text()
	}
	options := map[string]any{}
	for _, part := range optionPart.FindAllStringSubmatch(order, -1) {
		options[part[1]] = strings.Trim(part[2], `"`)
	}
	command := strings.TrimSpace(optionPart.ReplaceAllString(order, ""))
	return g.command(l.who, l.where, command, options).Text()
}

// TestDiscordGuide does what the guide says, in its order, with its configuration.
func TestDiscordGuide(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "guides", "discord.md"))
	if err != nil {
		t.Fatal(err)
	}
	settings, _ := guideBlocks(string(data), "yaml")
	settings = slices.DeleteFunc(settings, func(s string) bool { return !strings.Contains(s, "editors:") }) // other chapters have others
	lines := readGuide(t, string(data))
	if len(settings) == 0 || len(lines) < 10 {
		t.Fatalf("the guide has %d examples of settings and %d of what people say", len(settings), len(lines))
	}
	g := inGuild(t, discordsim.Options{
		Roles: []discordsim.RoleSpec{{Name: "keeper", Permissions: []string{"manage_guild", "manage_channels"}}, {Name: "builder", Permissions: []string{"manage_channels"}}, {Name: "guest"}},
		People: []discordsim.PersonSpec{{Name: "ada", Owner: true, Roles: []string{"keeper"}}, {Name: "bob"}, {Name: "carol", Roles: []string{"builder"}},
			{Name: "dan", Roles: []string{"builder", "guest"}}},
	}, map[string]string{"shared.yaml": settings[0]})
	for _, l := range lines {
		got := l.do(g)
		for _, c := range []string{"scribe", "general"} {
			got = strings.ReplaceAll(got, "<#"+g.Channel(c).String()+">", "#"+c)
		}
		for _, w := range l.want {
			if !strings.Contains(strings.ReplaceAll(got, "**", ""), strings.ReplaceAll(w, "**", "")) {
				t.Errorf("docs/guides/discord.md:%d: %s", l.line, fmt.Sprintf("%s says %q and is answered %q, without %q", l.who, l.words, got, w))
			}
		}
	}
}
