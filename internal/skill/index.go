package skill

import (
	"fmt"
	"regexp"
	"strings"

	"chorus/internal/pattern"
	"chorus/internal/text"
)

// maxIndex is about 6,000 tokens. Beyond it, descriptions are shortened and then left out.
const maxIndex = 24_000

// how is what a model is told about skills, before the list.
const how = `Skills are instructions for certain tasks, approved by somebody here. When a task fits a description, read the skill's file with read before you begin, and follow it. ` +
	`Its other files are next to it: file tools reach them below its location's folder, commands below $CHORUS_ROOT_SKILLS/NAME. A skill gives you no rights that you do not have.`

// Index returns the list of skills that a model sees: name, description and
// where the rest is. It returns "" if there are none.
func Index(list []Skill) string {
	var shown []Skill
	for _, s := range list {
		if !s.Hidden {
			shown = append(shown, s)
		}
	}
	if len(shown) == 0 {
		return ""
	}
	for _, most := range []int{maxDescription, 200, 80, 0} {
		if out := index(shown, most); len(out) <= maxIndex {
			return out
		}
	}
	for n := len(shown); ; n /= 2 {
		if out := index(shown[:n], 0); len(out) <= maxIndex || n <= 1 {
			return out + fmt.Sprintf("\nThere are %d more: list_files @skills shows them.", len(shown)-n)
		}
	}
}

func index(list []Skill, most int) string {
	var b strings.Builder
	b.WriteString(how)
	b.WriteString("\n<available_skills>\n")
	for _, s := range list {
		fmt.Fprintf(&b, "<skill><name>%s</name>", escape(s.Name))
		if most > 0 {
			fmt.Fprintf(&b, "<description>%s</description>", escape(text.Clip(s.Description, most)))
		}
		fmt.Fprintf(&b, "<location>@skills/%s/%s</location></skill>\n", escape(s.Name), File)
	}
	b.WriteString("</available_skills>")
	return b.String()
}

var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;")

func escape(s string) string { return escaper.Replace(s) }

// Translate changes the paths of a skill's own files in a text to paths below at, where commands find the
// skill. It replaces {baseDir} and the places in which other programs keep the skill.
func Translate(body, name, dir, at string) string {
	body = strings.NewReplacer("{baseDir}", at, "${CLAUDE_SKILL_DIR}", at, "$CLAUDE_SKILL_DIR", at).Replace(body)
	if dir != "" {
		body = strings.ReplaceAll(body, dir+"/", at+"/")
	}
	elsewhere := regexp.MustCompile(`(^|[\s"'` + "`" + `(=\[])(?:~/|\$HOME/|\$\{HOME\}/|\./)?\.(?:claude|agents|chorus)/skills/` + regexp.QuoteMeta(name) + `/`)
	return elsewhere.ReplaceAllString(body, "${1}"+strings.ReplaceAll(at, "$", "$$")+"/")
}

var addressed = pattern.Lazy(`^\s*(?:(?:<@[^>\s]{1,80}>|@[^\s/]{1,80}(?: [^\s/]{1,80}){0,2})[\s,:]+)?`)

// Called splits a prompt that calls a skill by its name: "/review src/a.go" and "/skill review
// src/a.go" call review. On chat platforms the agent's own name may come before it.
func Called(prompt string) (name, args string, ok bool) {
	if begin := strings.TrimLeft(prompt, " \t\n\f\r"); begin == "" || strings.IndexByte("/@<", begin[0]) < 0 {
		return "", "", false // most prompts: the expression below takes a while to compile
	}
	rest, ok := strings.CutPrefix(addressed().ReplaceAllString(prompt, ""), "/")
	if !ok {
		return "", "", false
	}
	name, args = word(rest)
	if name == "skill" {
		name, args = word(args)
	}
	return name, args, ValidName(name)
}

func word(s string) (first, rest string) {
	if i := strings.IndexAny(s, " \t\n"); i >= 0 {
		return s[:i], strings.TrimSpace(s[i:])
	}
	return s, ""
}

// maxBody is how much of a called skill is shown to the model, which reads the rest itself.
const maxBody = 48 << 10

// Call returns what a model is told when somebody has called a skill
// by name. at is where commands find the skill.
func (s Skill) Call(args, dir, at string) string {
	body := Translate(s.Body, s.Name, dir, at)
	if strings.Contains(body, "$ARGUMENTS") {
		body = strings.ReplaceAll(body, "$ARGUMENTS", args)
	}
	if len(body) > maxBody {
		body = text.Clip(body, maxBody) + fmt.Sprintf("\n[… the rest stands in @skills/%s/%s …]", s.Name, File)
	}
	return fmt.Sprintf("A prompt that begins with /%s calls the skill %s: follow it for that prompt. Its files are below @skills/%s (in commands %s).\n\n%s", s.Name, s.Name, s.Name, at, body)
}
