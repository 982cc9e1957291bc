package slash

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"chorus/internal/operation"
)

// text is an output for people: the command's own text, otherwise a sentence, otherwise a table. It shows at most so many characters (0: all)
// and says where to find the rest.
func (e entry) text(in, out any, most int) string {
	if !e.isList(out) {
		return e.capped(e.single(in, out), most)
	}
	var lines []string
	for _, item := range usableFirst(operation.Items(out)) {
		if e.line.Show != "" {
			lines = append(lines, operation.Render(e.line.Show, in, item))
		}
	}
	if e.line.Show == "" {
		for _, row := range e.d.TableOf(out).Rows {
			lines = append(lines, "- "+strings.Join(slices.DeleteFunc(row, func(cell string) bool { return cell == "" }), " · "))
		}
	}
	if len(lines) == 0 {
		return cmp.Or(e.none, "done")
	}
	shown, room := 0, most
	for shown < len(lines) && (most == 0 || room >= utf8.RuneCountInString(lines[shown])+1) {
		room -= utf8.RuneCountInString(lines[shown]) + 1
		shown++
	}
	if next, ok := operation.Value(out, "next"); shown == len(lines) && ok && next.String() != "" {
		return strings.Join(lines, "\n") + "\nThere is more" + e.elsewhere()
	}
	if shown == len(lines) {
		return strings.Join(lines, "\n")
	}
	if shown == 0 {
		return e.capped(lines[0], most)
	}
	return fmt.Sprintf("%s\n%d more%s", strings.Join(lines[:shown], "\n"), len(lines)-shown, e.elsewhere())
}

// usableFirst puts the ready items of a list first, because a long list is not shown completely.
func usableFirst(items []any) []any {
	slices.SortStableFunc(items, func(a, b any) int { return notReady(a) - notReady(b) })
	return items
}

// notReady is 1 for an item that says that it is not ready.
func notReady(item any) int {
	if v, ok := operation.Value(item, "ready"); ok && v.Kind() == reflect.Bool && !v.Bool() {
		return 1
	}
	return 0
}

func (e entry) isList(out any) bool {
	return (e.d.Columns != "" || e.line.Show != "") && operation.IsList(out)
}

func (e entry) single(in, out any) string {
	switch {
	case e.line.Show != "":
		return operation.Render(e.line.Show, in, out)
	case e.d.Done != "":
		return operation.Sentence(e.d.Done, in, out)
	}
	var lines []string
	for _, row := range e.d.TableOf(out).Rows {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("**%s** %s", row[0], row[1])))
	}
	return cmp.Or(strings.ReplaceAll(strings.Join(lines, "\n"), "**** ", ""), e.none, "done")
}

// capped cuts a text at the end of a line and closes an open code block.
func (e entry) capped(whole string, most int) string {
	if most == 0 || utf8.RuneCountInString(whole) <= most {
		return whole
	}
	cut := string([]rune(whole)[:most])
	if at := strings.LastIndexByte(cut, '\n'); at > most/2 {
		cut = cut[:at]
	}
	if strings.Count(cut, "```")%2 == 1 {
		cut += "\n```"
	}
	return cut + "\nThis is not complete" + e.elsewhere()
}

// elsewhere says where to find the rest.
func (e entry) elsewhere() string {
	var where []string
	if e.d.Page != "" {
		where = append(where, "the page "+e.d.Page+" in the browser")
	}
	if len(e.d.CLI) > 0 {
		where = append(where, "`chorus "+e.d.CLI[0].Words+"`")
	}
	if len(where) == 0 {
		return ""
	}
	return "; the rest: " + strings.Join(where, ", ")
}
