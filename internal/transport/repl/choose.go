package repl

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"chorus/internal/markdown"
	"chorus/internal/theme"
)

// choice is a list to choose from by number, for terminals without drawing. It corresponds to the menu of the window.
type choice struct {
	what string // what is being chosen
	none string // what happens without a choice
	list []Completion
	take func(ctx context.Context, c *Completion) (leave bool, err error) // nil: none of them
}

// maxNumbered is how many choices are listed at once. A part of a name narrows a longer list.
const maxNumbered = 20

// offer lists the choices and makes the next line the answer.
func (c *plain) offer(o choice) {
	c.open = &o
	lines := []string{fmt.Sprintf("%s: type a number, part of a name, or Enter %s", o.what, o.none)}
	for i, one := range o.list[:min(len(o.list), maxNumbered)] {
		line := fmt.Sprintf("%d. %s", i+1, one.Label)
		if one.About != "" {
			line += ": " + one.About
		}
		lines = append(lines, line)
	}
	if more := len(o.list) - maxNumbered; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	for _, line := range lines {
		c.f.printer.screen.print(c.o.Console.Out, say("", markdown.Clean(line), c.o.Console.room())...)
	}
}

// chosen handles the line typed for the open choice.
func (c *plain) chosen(ctx context.Context, line string) (leave bool, err error) {
	o := *c.open
	line = strings.TrimSpace(line)
	n, noNumber := strconv.Atoi(line)
	switch {
	case line == "":
		c.open = nil
		return o.take(ctx, nil)
	case noNumber == nil && n >= 1 && n <= len(o.list):
		c.open = nil
		return o.take(ctx, &o.list[n-1])
	case noNumber == nil:
		c.f.printer.screen.print(c.o.Console.Out, fmt.Sprintf("choose 1 to %d, or Enter %s", len(o.list), o.none))
		return false, nil
	}
	fewer := o
	fewer.list = nil
	for _, one := range o.list {
		if strings.Contains(strings.ToLower(one.Label+" "+one.About), strings.ToLower(line)) {
			fewer.list = append(fewer.list, one)
		}
	}
	if len(fewer.list) == 0 {
		c.f.printer.screen.print(c.o.Console.Out, say("", "nothing matches "+markdown.Clean(line)+"; type a number, or Enter "+o.none, c.o.Console.room())...)
		return false, nil
	}
	c.offer(fewer)
	return false, nil
}

// completions returns the session's completions of a line.
func (c *plain) completions(ctx context.Context, typed string) (out []Completion) {
	completer, ok := c.s.(Completer)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	list, err := completer.Complete(ctx, typed)
	if err != nil {
		return nil // completion is optional
	}
	for _, one := range list {
		if one.Line != "" && markdown.Clean(one.Line) == one.Line && !strings.ContainsAny(one.Line, "\n\t") {
			out = append(out, one)
		}
	}
	return out
}

// offersFor offers arguments for a command, or the commands that begin so; false: there is nothing to choose from.
func (c *plain) offersFor(ctx context.Context, name, args string) bool {
	var list []Completion
	switch {
	case args != "":
		return false
	case name == "model" || name == "mode" || name == "resume":
		list = c.completions(ctx, "/"+name+" ")
	case !known(name, c.all):
		for _, one := range c.all {
			if strings.HasPrefix(one.Name, name) {
				list = append(list, Completion{Line: "/" + one.Name, Label: strings.TrimSpace("/" + one.Name + " " + one.Args), About: one.About})
			}
		}
	}
	if len(list) < 1 || len(list) < 2 && !known(name, c.all) {
		return false
	}
	what := name
	if !known(name, c.all) {
		what = "commands"
	}
	c.offer(choice{what: what, none: "to go back", list: list, take: func(ctx context.Context, one *Completion) (bool, error) {
		if one == nil {
			return false, nil
		}
		return c.words(ctx, one.Line)
	}})
	return true
}

// offersFile offers the files for the first unfinished @name of a text; false: every name is complete, or there are no suggestions.
func (c *plain) offersFile(ctx context.Context, line string) bool {
	at := 0
	for word := range strings.FieldsSeq(line) {
		begin := at + strings.Index(line[at:], word)
		at = begin + len(word)
		if !strings.HasPrefix(word, "@") {
			continue
		}
		list := c.completions(ctx, word)
		if len(list) == 0 || strings.TrimSpace(list[0].Line) == word {
			continue
		}
		before, after := line[:begin], line[at:]
		alone := strings.TrimSpace(before+after) == ""
		none := "to send it as it is"
		if alone {
			none = "to go back"
		}
		c.offer(choice{what: "files for " + word, none: none, list: list, take: func(ctx context.Context, one *Completion) (bool, error) {
			switch {
			case one == nil && alone:
				return false, nil
			case one == nil:
				return c.send(ctx, line)
			case alone:
				c.begun = one.Line
				c.f.printer.screen.print(c.o.Console.Out, say("", strings.TrimSpace(one.Line)+": now type your message", c.o.Console.room())...)
				return false, nil
			}
			whole := before + strings.TrimSpace(one.Line) + after
			if c.offersFile(ctx, whole) {
				return false, nil
			}
			return c.send(ctx, whole)
		}})
		return true
	}
	return false
}

// recall lists the last messages, and continues the open run, if any, with its approval.
func (c *plain) recall(ctx context.Context) (leave bool, err error) {
	if c.o.Head <= c.o.After {
		return false, nil
	}
	past := newWindow(ctx, c.s, c.o)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	for item, err := range c.s.Watch(watching, c.o.After) {
		if err != nil {
			return false, err
		}
		if item.Event == nil {
			continue
		}
		for _, n := range past.presenter.tell(item) {
			past.remember(n)
		}
		if item.Event.Seq >= c.o.Head {
			break
		}
	}
	for _, m := range past.messages[max(0, len(past.messages)-2):] {
		who := "it said: "
		if m.mine {
			who = "you said: "
		}
		c.f.printer.screen.print(c.o.Console.Out, clipLines(say("", who+strings.TrimSpace(m.text), c.o.Console.room()), !m.mine)...)
	}
	if past.presenter.run == "" {
		return false, nil
	}
	c.f.presenter, c.f.printer.presenter, c.f.approvals = past.presenter, past.presenter, past.approvals
	if len(past.approvals) > 0 {
		c.f.printer.note(theme.Faint, "• ", "the run still waits for approval")
	} else {
		c.f.printer.note(theme.Faint, "• ", "the interrupted run continues")
	}
	c.f.ask(ctx)
	c.exit, err = c.f.follow(ctx, c.items, target{run: past.presenter.run})
	return c.f.left || ctx.Err() != nil, err
}
