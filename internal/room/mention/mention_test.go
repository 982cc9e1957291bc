package mention

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var here = Directory{
	People:   []Named{{"1", "ada"}, {"2", "Ada Lovelace"}, {"3", "d.e"}, {"4", "Claude"}, {"5", "ada"}, {"6", "everyone"}, {"7", " "}, {"", "Nobody"}},
	Roles:    []Named{{"20", "admins"}},
	Channels: []Named{{"30", "general"}, {"31", "general-talk"}},
}

func TestRead(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"<@1> and <@!2>":            "<@ada> and <@Ada Lovelace>",
		"<@99> is unknown":          "<@99> is unknown",
		"<@&20> in <#30>":           "@admins in #general",
		"<:wave:40><a:dance:41>":    ":wave::dance:",
		"`<@1>` and ```\n<@1>\n```": "`<@1>` and ```\n<@1>\n```",
		"https://x.example/<@1>":    "https://x.example/<@1>",
		"a < b @ c":                 "a < b @ c",
	} {
		if got := Read(in, here); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in, want string
		users    []string
	}{
		{"hi @ada!", "hi <@1>!", []string{"1"}},
		{"hi @Ada Lovelace, hi @ada", "hi <@2>, hi <@1>", []string{"2", "1"}},
		{"<@ada> <@d.e> <@ADA LOVELACE>", "<@1> <@3> <@2>", []string{"1", "3", "2"}},
		{"<@1> stays", "<@1> stays", []string{"1"}},
		{"mail me@ada.example", "mail me@ada.example", nil},
		{"@adams is another", "@adams is another", nil},
		{"@ada2 and @ada_", "@ada2 and @ada_", nil},
		{"@d.e.", "<@3>.", []string{"3"}},
		{"`@ada` ```\n@ada\n``` @ada", "`@ada` ```\n@ada\n``` <@1>", []string{"1"}},
		{"https://x.example/@ada", "https://x.example/@ada", nil},
		{"@everyone @here @admins", "@everyone @here @admins", nil},
		{"in #general-talk and #general", "in <#31> and <#30>", nil},
		{"<@nobody> <@", "<@nobody> <@", nil},
		{"@ x, @Nobody", "@ x, @Nobody", nil},
	} {
		got := Write(c.in, here)
		if users := Users(got); got != c.want || !slices.Equal(users, c.users) {
			t.Errorf("%q: %q %v, want %q %v", c.in, got, users, c.want, c.users)
		}
	}
}

func TestReply(t *testing.T) {
	t.Parallel()
	if Reply("ada") != "<reply:@ada> " || Reply("") != "<reply:@someone> " {
		t.Error(Reply("ada"), Reply(""))
	}
	for in, want := range map[string]string{"<reply:@ada> hi": "hi", " <reply:@a b> hi": "hi", "hi <reply:@ada>": "hi <reply:@ada>", "<reply:@ada": "<reply:@ada", "": "", " x": " x"} {
		if got := WithoutReply(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

// TestThereAndBack: what the platform wrote comes back after a model has read it.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	parts := []string{"<@1>", "<@2>", "<@3>", "<@4>", "<#30>", "<#31>", " word ", "`<@1>`", "<@99>", ", ", "\n```\n<@1>\n```\n"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 20).Draw(t, "parts"), " ")
		if got := Write(Read(text, here), here); got != text {
			t.Fatalf("%q came back as %q", text, got)
		}
	})
}

func FuzzWrite(f *testing.F) {
	for _, s := range []string{"@ada", "<@ada>", "`@ada", "<@", ":wave:", "@Ada Lovelace`@ada`", "\xff@ada", "<@1>", "<reply:@x> y"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := Write(s, here)
		if again := Write(once, here); again != once {
			t.Fatalf("%q became %q became %q", s, once, again)
		}
		for _, id := range Users(once) {
			if !strings.Contains(once, "<@"+id+">") && !strings.Contains(once, "<@!"+id+">") {
				t.Fatalf("%q rings %s", once, id)
			}
		}
		_ = Read(s, here)
		_ = WithoutReply(s)
	})
}
