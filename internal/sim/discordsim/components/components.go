package components

import (
	"fmt"
	"slices"
	"strings"

	"chorus/internal/sim/discordsim/apierror"
	"chorus/internal/sim/discordsim/jsonobject"
)

// The kinds of components, by Discord's numbers.
const (
	KindRow     = 1
	KindButton  = 2
	KindSelect  = 3
	KindInput   = 4
	KindUsers   = 5
	KindAny     = 7
	KindChannel = 8
	KindSection = 9
	KindText    = 10
	KindMedia   = 12
	KindFile    = 13
	KindLine    = 14
	KindBox     = 17
	KindLabel   = 18
)

// IsSelect reports whether a kind is a menu.
func IsSelect(kind int) bool {
	return kind == KindSelect || kind >= KindUsers && kind <= KindChannel
}

// checker walks a tree of components once.
type checker struct {
	f     *apierror.Form
	v2    bool
	count int
	text  int
	ids   map[string]bool
	seen  map[int]bool // explicit numbers of components
}

// Check validates the components of a message against Discord's rules: rows of five without the flag of the second
// version, a tree of forty with it; unique custom ids.
func Check(f *apierror.Form, list []object, v2 bool) {
	c := &checker{f: f, v2: v2, ids: map[string]bool{}, seen: map[int]bool{}}
	if !v2 && len(list) > 5 {
		f.Add("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
	}
	for i, one := range list {
		at := apierror.Item("components", i)
		if !v2 && jsonobject.Kind(one) != KindRow {
			f.Add(at+".type", "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (1,).")
			continue
		}
		if v2 && !onTop(jsonobject.Kind(one)) {
			f.Add(at+".type", "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (1, 9, 10, 12, 13, 14, 17).")
			continue
		}
		c.one(at, one)
	}
	if v2 && c.count > 40 {
		f.Add("components", "BASE_TYPE_BAD_LENGTH", "The total number of components must be 40 or fewer.")
	}
	if c.text > 4000 {
		f.Add("components", "COMPONENT_MAX_TOTAL_TEXT_SIZE_EXCEEDED", "The total size of displayable text must be 4000 or fewer.")
	}
}

func (c *checker) one(at string, o object) {
	c.count++
	kind := jsonobject.Kind(o)
	c.number(at, o)
	switch {
	case kind == KindRow:
		c.row(at, jsonobject.List(o, "components"))
		return
	case kind == KindButton:
		c.button(at, o)
	case IsSelect(kind):
		c.selectMenu(at, o)
	case kind == KindText:
		if jsonobject.Text(o, "content") == "" {
			c.f.Required(at + ".content")
		}
		c.text += len([]rune(jsonobject.Text(o, "content")))
	case kind == KindInput:
		c.input(at, o)
	case kind == KindSection:
		c.section(at, o)
	case kind == KindMedia:
		c.media(at, o)
	case kind == KindFile:
		c.attached(at, o)
	case kind == KindLine:
		if n := jsonobject.Number(o, "spacing", 1); n != 1 && n != 2 {
			c.f.Add(at+".spacing", "BASE_TYPE_CHOICES", "Value must be one of {1, 2}.")
		}
	case kind == KindBox:
		for i, child := range jsonobject.List(o, "components") {
			if inner := jsonobject.Kind(child); !onTop(inner) || inner == KindBox {
				c.f.Add(apierror.Item(at+".components", i)+".type", "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (1, 9, 10, 12, 13, 14).")
			}
		}
	case kind == KindLabel:
		c.f.Between(at+".label", len([]rune(jsonobject.Text(o, "label"))), 1, 45)
		c.f.Longest(at+".description", jsonobject.Text(o, "description"), 100)
		if _, ok := o["component"].(map[string]any); !ok {
			c.f.Required(at + ".component")
		}
	case kind < KindSection || kind > 25:
		c.f.Add(at+".type", "UNION_TYPE_CHOICES", "Value of field \"type\" is not a component: %d.", kind)
	}
	for i, child := range jsonobject.List(o, "components") {
		c.one(apierror.Item(at+".components", i), child)
	}
	for _, key := range []string{"accessory", "component"} {
		if child, ok := o[key].(map[string]any); ok {
			c.one(at+"."+key, child)
		}
	}
}

// onTop reports what may be at the top level of a message or in a container.
func onTop(kind int) bool {
	switch kind {
	case KindRow, KindSection, KindText, KindMedia, KindFile, KindLine, KindBox:
		return true
	}
	return false
}

// section is one to three texts with a button or a picture.
func (c *checker) section(at string, o object) {
	children := jsonobject.List(o, "components")
	c.f.Between(at+".components", len(children), 1, 3)
	for i, child := range children {
		if jsonobject.Kind(child) != KindText {
			c.f.Add(apierror.Item(at+".components", i)+".type", "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (10,).")
		}
	}
	beside, ok := o["accessory"].(map[string]any)
	const thumbnail = 11
	if kind := jsonobject.Kind(beside); !ok || kind != KindButton && kind != thumbnail {
		c.f.Required(at + ".accessory")
	}
}

// number validates the number of a component: an explicit one must be unique.
func (c *checker) number(at string, o object) {
	n, ok := o["id"].(float64)
	if !ok || n == 0 || c.seen == nil {
		return
	}
	if c.seen[int(n)] {
		c.f.Add(at+".id", "COMPONENT_DUPLICATED_ID", "Component id cannot be duplicated")
	}
	c.seen[int(n)] = true
}

// media is a gallery of one to ten pictures, each with an address.
func (c *checker) media(at string, o object) {
	items := jsonobject.List(o, "items")
	c.f.Between(at+".items", len(items), 1, 10)
	for i, item := range items {
		where := apierror.Item(at+".items", i)
		c.address(where+".media", item["media"], "http://", "https://", "attachment://")
		c.f.Longest(where+".description", jsonobject.Text(item, "description"), 1024)
	}
}

// attached is a file that comes with the message.
func (c *checker) attached(at string, o object) {
	c.address(at+".file", o["file"], "attachment://")
}

// address validates the address of a picture or a file.
func (c *checker) address(at string, media any, schemes ...string) {
	m, _ := media.(map[string]any)
	url := jsonobject.Text(m, "url")
	switch {
	case url == "":
		c.f.Required(at + ".url")
	case !slices.ContainsFunc(schemes, func(s string) bool { return strings.HasPrefix(url, s) }):
		c.f.Add(at+".url", "URL_TYPE_INVALID_SCHEME", "Scheme %q is not supported. Scheme must be one of (%s).", strings.SplitN(url, ":", 2)[0], strings.ReplaceAll(strings.Join(schemes, ", "), "://", ""))
	}
}

// input is a text input in a modal.
func (c *checker) input(at string, o object) {
	c.customID(at, o)
	if style, _ := o["style"].(float64); style != 1 && style != 2 {
		c.f.Add(at+".style", "BASE_TYPE_CHOICES", "Value must be one of {1, 2}.")
	}
	c.f.Longest(at+".placeholder", jsonobject.Text(o, "placeholder"), 100)
	c.f.Longest(at+".value", jsonobject.Text(o, "value"), 4000)
	if most, ok := o["max_length"].(float64); ok {
		c.f.Between(at+".max_length", int(most), 1, 4000)
	}
}

func (c *checker) row(at string, children []object) {
	if len(children) < 1 || len(children) > 5 {
		c.f.Between(at+".components", len(children), 1, 5)
	}
	for i, child := range children {
		kind := jsonobject.Kind(child)
		if kind != KindButton && kind != KindInput && !IsSelect(kind) {
			c.f.Add(apierror.Item(at+".components", i)+".type", "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (2, 3, 4, 5, 6, 7, 8).")
			continue
		}
		if IsSelect(kind) && len(children) > 1 {
			c.f.Add(at+".components", "COMPONENT_LAYOUT_WIDTH_EXCEEDED", "The specified component exceeds the maximum width")
		}
		c.one(apierror.Item(at+".components", i), child)
	}
}

func (c *checker) customID(at string, o object) {
	id := jsonobject.Text(o, "custom_id")
	switch {
	case id == "":
		c.f.Required(at + ".custom_id")
	case c.ids[id]:
		c.f.Add(at+".custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated")
	}
	c.ids[id] = true
	c.f.Longest(at+".custom_id", id, 100)
}

func (c *checker) button(at string, o object) {
	c.f.Longest(at+".label", jsonobject.Text(o, "label"), 80)
	style, _ := o["style"].(float64)
	switch {
	case style < 1 || style > 6:
		c.f.Add(at+".style", "BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3, 4, 5, 6}.")
	case style == 5:
		if jsonobject.Text(o, "url") == "" {
			c.f.Required(at + ".url")
		}
	case style != 6:
		c.customID(at, o)
	}
}

func (c *checker) selectMenu(at string, o object) {
	c.customID(at, o)
	c.f.Longest(at+".placeholder", jsonobject.Text(o, "placeholder"), 150)
	if jsonobject.Kind(o) != KindSelect {
		return
	}
	options := jsonobject.List(o, "options")
	c.f.Between(at+".options", len(options), 1, 25)
	seen := map[string]bool{}
	for i, option := range options {
		value := jsonobject.Text(option, "value")
		where := fmt.Sprintf("%s.options.%d", at, i)
		if seen[value] {
			c.f.Add(where+".value", "SELECT_COMPONENT_OPTION_VALUE_DUPLICATED", "The specified option value is already used")
		}
		seen[value] = true
		c.f.Between(where+".label", len([]rune(jsonobject.Text(option, "label"))), 1, 100)
		c.f.Between(where+".value", len([]rune(value)), 1, 100)
	}
}

// Find returns the part of a message with a custom id.
func Find(list []object, customID string) object {
	for _, o := range list {
		if jsonobject.Text(o, "custom_id") == customID && customID != "" {
			return o
		}
		if found := Find(jsonobject.List(o, "components"), customID); found != nil {
			return found
		}
		for _, key := range []string{"accessory", "component"} {
			if child, ok := o[key].(map[string]any); ok {
				if found := Find([]object{child}, customID); found != nil {
					return found
				}
			}
		}
	}
	return nil
}

// Displayed returns the text inside components of the second version.
func Displayed(list []object) string {
	var all strings.Builder
	for _, o := range list {
		if jsonobject.Kind(o) == KindText {
			all.WriteString("\n" + jsonobject.Text(o, "content"))
		}
		all.WriteString(Displayed(jsonobject.List(o, "components")))
	}
	return all.String()
}

// Numbered assigns ids to components, as Discord does.
func Numbered(list []object) []object {
	n := 0
	var walk func(o object)
	walk = func(o object) {
		n++
		if _, ok := o["id"]; !ok {
			o["id"] = n
		}
		for _, child := range jsonobject.List(o, "components") {
			walk(child)
		}
		for _, key := range []string{"accessory", "component"} {
			if child, ok := o[key].(map[string]any); ok {
				walk(child)
			}
		}
	}
	for _, o := range list {
		walk(o)
	}
	if list == nil {
		return []object{}
	}
	return list
}

// CustomIDs returns those of the buttons and menus in a list, in order.
func CustomIDs(list []object) (out []string) {
	for _, o := range list {
		if id := jsonobject.Text(o, "custom_id"); id != "" {
			out = append(out, id)
		}
		out = append(out, CustomIDs(jsonobject.List(o, "components"))...)
		if child, ok := o["accessory"].(map[string]any); ok {
			out = append(out, CustomIDs([]object{child})...)
		}
	}
	return out
}

// CheckFilled validates the values of a modal against its inputs, as clients do before they send it.
func CheckFilled(asked, given []object) error {
	f := &apierror.Form{}
	values := inputsOf(given)
	for id, input := range inputsOf(asked) {
		written := jsonobject.Text(values[id], "value")
		required, said := input["required"].(bool)
		chosen, _ := values[id]["values"].([]any)
		if (required || !said) && (jsonobject.Kind(input) == KindInput && written == "" || IsSelect(jsonobject.Kind(input)) && len(chosen) == 0) {
			f.Required("data.components." + id)
		}
		if IsSelect(jsonobject.Kind(input)) {
			checkChosen(f, "data.components."+id, input, chosen)
		}
		if most, ok := input["max_length"].(float64); ok {
			f.Longest("data.components."+id, written, int(most))
		}
	}
	return f.Err()
}

// checkChosen validates the chosen values of a menu.
func checkChosen(f *apierror.Form, at string, menu object, chosen []any) {
	if most := jsonobject.Number(menu, "max_values", 1); len(chosen) > most {
		f.Add(at, "BASE_TYPE_BAD_LENGTH", "Must be %d or fewer in length.", most)
	}
	if jsonobject.Kind(menu) != KindSelect {
		return
	}
	for _, value := range chosen {
		if !slices.ContainsFunc(jsonobject.List(menu, "options"), func(o object) bool { return o["value"] == value }) {
			f.Add(at, "BASE_TYPE_CHOICES", "Value %q is not one of the options.", value)
		}
	}
}

// inputsOf returns the parts of a modal that have a custom id.
func inputsOf(list []object) map[string]object {
	out := map[string]object{}
	for _, o := range list {
		if id := jsonobject.Text(o, "custom_id"); id != "" {
			out[id] = o
		}
		children := jsonobject.List(o, "components")
		if child, ok := o["component"].(map[string]any); ok {
			children = append(children, child)
		}
		for id, child := range inputsOf(children) {
			out[id] = child
		}
	}
	return out
}

// Fill returns what a client sends for a modal: the inputs with their values.
func Fill(list []object, values map[string]string) []any {
	out := []any{}
	for _, o := range list {
		one := object{"type": jsonobject.Kind(o)}
		if id, ok := o["id"]; ok {
			one["id"] = id
		}
		if custom := jsonobject.Text(o, "custom_id"); custom != "" {
			value, ok := values[custom]
			one["custom_id"] = custom
			switch {
			case IsSelect(jsonobject.Kind(o)):
				one["values"] = chosen(o, value, ok)
			case ok:
				one["value"] = value
			default:
				one["value"] = jsonobject.Text(o, "value")
			}
		}
		if children := jsonobject.List(o, "components"); len(children) > 0 {
			one["components"] = Fill(children, values)
		}
		if child, ok := o["component"].(map[string]any); ok {
			one["component"] = Fill([]object{child}, values)[0]
		}
		out = append(out, one)
	}
	return out
}

// chosen returns the chosen values of a menu, one per line, or else the preselected ones.
func chosen(menu object, lines string, given bool) []any {
	out := []any{}
	if given {
		for value := range strings.SplitSeq(lines, "\n") {
			if value != "" {
				out = append(out, value)
			}
		}
		return out
	}
	for _, o := range jsonobject.List(menu, "options") {
		if o["default"] == true {
			out = append(out, o["value"])
		}
	}
	return out
}

// CheckModal validates a modal against Discord's rules.
func CheckModal(modal object) error {
	f := &apierror.Form{}
	f.Between("data.title", len([]rune(jsonobject.Text(modal, "title"))), 1, 45)
	f.Between("data.custom_id", len([]rune(jsonobject.Text(modal, "custom_id"))), 1, 100)
	parts := jsonobject.List(modal, "components")
	f.Between("data.components", len(parts), 1, 5)
	check := &checker{f: f, ids: map[string]bool{}}
	for n, part := range parts {
		kind := jsonobject.Kind(part)
		if kind != KindRow && kind != KindLabel && kind != KindText {
			f.Add(apierror.Item("data.components", n)+".type", "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (1, 10, 18).")
			continue
		}
		check.one(apierror.Item("data.components", n), part)
	}
	return f.Err()
}
