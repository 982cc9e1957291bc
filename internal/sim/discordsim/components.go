package discordsim

import (
	"fmt"
	"slices"
	"strings"
)

// The kinds of components, by Discord's numbers.
const (
	componentRow     = 1
	componentButton  = 2
	componentSelect  = 3
	componentInput   = 4
	componentUsers   = 5
	componentAny     = 7
	componentChannel = 8
	componentSection = 9
	componentText    = 10
	componentMedia   = 12
	componentFile    = 13
	componentLine    = 14
	componentBox     = 17
	componentLabel   = 18
)

func kindOf(c object) int {
	n, _ := c["type"].(float64)
	return int(n)
}

func isSelect(kind int) bool {
	return kind == componentSelect || kind >= componentUsers && kind <= componentChannel
}

// componentCheck goes through a tree of components once.
type componentCheck struct {
	f     *form
	v2    bool
	count int
	text  int
	ids   map[string]bool
	seen  map[int]bool // the numbers of components that were given one
}

// checkComponents holds the components of a message against Discord's rules: rows of five
// without the second version's flag, a tree of forty with it; custom ids that differ.
func checkComponents(f *form, list []object, v2 bool) {
	c := &componentCheck{f: f, v2: v2, ids: map[string]bool{}, seen: map[int]bool{}}
	if !v2 && len(list) > 5 {
		f.add("components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
	}
	for i, one := range list {
		at := index("components", i)
		if !v2 && kindOf(one) != componentRow {
			f.add(at+".type", "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (1,).")
			continue
		}
		if v2 && !onTop(kindOf(one)) {
			f.add(at+".type", "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (1, 9, 10, 12, 13, 14, 17).")
			continue
		}
		c.one(at, one)
	}
	if v2 && c.count > 40 {
		f.add("components", "BASE_TYPE_BAD_LENGTH", "The total number of components must be 40 or fewer.")
	}
	if c.text > 4000 {
		f.add("components", "COMPONENT_MAX_TOTAL_TEXT_SIZE_EXCEEDED", "The total size of displayable text must be 4000 or fewer.")
	}
}

func (c *componentCheck) one(at string, o object) {
	c.count++
	kind := kindOf(o)
	c.number(at, o)
	switch {
	case kind == componentRow:
		c.row(at, listOf(o, "components"))
		return
	case kind == componentButton:
		c.button(at, o)
	case isSelect(kind):
		c.selectMenu(at, o)
	case kind == componentText:
		if textOf(o, "content") == "" {
			c.f.required(at + ".content")
		}
		c.text += len([]rune(textOf(o, "content")))
	case kind == componentInput:
		c.input(at, o)
	case kind == componentSection:
		c.section(at, o)
	case kind == componentMedia:
		c.media(at, o)
	case kind == componentFile:
		c.attached(at, o)
	case kind == componentLine:
		if n := numberOr(o, "spacing", 1); n != 1 && n != 2 {
			c.f.add(at+".spacing", "BASE_TYPE_CHOICES", "Value must be one of {1, 2}.")
		}
	case kind == componentBox:
		for i, child := range listOf(o, "components") {
			if inner := kindOf(child); !onTop(inner) || inner == componentBox {
				c.f.add(index(at+".components", i)+".type", "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (1, 9, 10, 12, 13, 14).")
			}
		}
	case kind == componentLabel:
		c.f.between(at+".label", len([]rune(textOf(o, "label"))), 1, 45)
		c.f.longest(at+".description", textOf(o, "description"), 100)
		if _, ok := o["component"].(map[string]any); !ok {
			c.f.required(at + ".component")
		}
	case kind < componentSection || kind > 25:
		c.f.add(at+".type", "UNION_TYPE_CHOICES", "Value of field \"type\" is not a component: %d.", kind)
	}
	for i, child := range listOf(o, "components") {
		c.one(index(at+".components", i), child)
	}
	for _, key := range []string{"accessory", "component"} {
		if child, ok := o[key].(map[string]any); ok {
			c.one(at+"."+key, child)
		}
	}
}

// onTop reports what may stand in a message by itself, or in a container.
func onTop(kind int) bool {
	switch kind {
	case componentRow, componentSection, componentText, componentMedia, componentFile, componentLine, componentBox:
		return true
	}
	return false
}

// section is one to three texts with a button or a picture beside them.
func (c *componentCheck) section(at string, o object) {
	children := listOf(o, "components")
	c.f.between(at+".components", len(children), 1, 3)
	for i, child := range children {
		if kindOf(child) != componentText {
			c.f.add(index(at+".components", i)+".type", "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (10,).")
		}
	}
	beside, ok := o["accessory"].(map[string]any)
	const thumbnail = 11
	if kind := kindOf(beside); !ok || kind != componentButton && kind != thumbnail {
		c.f.required(at + ".accessory")
	}
}

// number holds the number of a component: one that is given is of that component alone.
func (c *componentCheck) number(at string, o object) {
	n, ok := o["id"].(float64)
	if !ok || n == 0 || c.seen == nil {
		return
	}
	if c.seen[int(n)] {
		c.f.add(at+".id", "COMPONENT_DUPLICATED_ID", "Component id cannot be duplicated")
	}
	c.seen[int(n)] = true
}

// media is a gallery of one to ten pictures, each with an address.
func (c *componentCheck) media(at string, o object) {
	items := listOf(o, "items")
	c.f.between(at+".items", len(items), 1, 10)
	for i, item := range items {
		where := index(at+".items", i)
		c.address(where+".media", item["media"], "http://", "https://", "attachment://")
		c.f.longest(where+".description", textOf(item, "description"), 1024)
	}
}

// attached is a file that comes with the message.
func (c *componentCheck) attached(at string, o object) {
	c.address(at+".file", o["file"], "attachment://")
}

// address holds the address of a picture or a file.
func (c *componentCheck) address(at string, media any, schemes ...string) {
	m, _ := media.(map[string]any)
	url := textOf(m, "url")
	switch {
	case url == "":
		c.f.required(at + ".url")
	case !slices.ContainsFunc(schemes, func(s string) bool { return strings.HasPrefix(url, s) }):
		c.f.add(at+".url", "URL_TYPE_INVALID_SCHEME", "Scheme %q is not supported. Scheme must be one of (%s).", strings.SplitN(url, ":", 2)[0], strings.ReplaceAll(strings.Join(schemes, ", "), "://", ""))
	}
}

// input is where words are written, in a modal.
func (c *componentCheck) input(at string, o object) {
	c.customID(at, o)
	if style, _ := o["style"].(float64); style != 1 && style != 2 {
		c.f.add(at+".style", "BASE_TYPE_CHOICES", "Value must be one of {1, 2}.")
	}
	c.f.longest(at+".placeholder", textOf(o, "placeholder"), 100)
	c.f.longest(at+".value", textOf(o, "value"), 4000)
	if most, ok := o["max_length"].(float64); ok {
		c.f.between(at+".max_length", int(most), 1, 4000)
	}
}

func (c *componentCheck) row(at string, children []object) {
	if len(children) < 1 || len(children) > 5 {
		c.f.between(at+".components", len(children), 1, 5)
	}
	for i, child := range children {
		kind := kindOf(child)
		if kind != componentButton && kind != componentInput && !isSelect(kind) {
			c.f.add(index(at+".components", i)+".type", "UNION_TYPE_CHOICES", "Value of field \"type\" must be one of (2, 3, 4, 5, 6, 7, 8).")
			continue
		}
		if isSelect(kind) && len(children) > 1 {
			c.f.add(at+".components", "COMPONENT_LAYOUT_WIDTH_EXCEEDED", "The specified component exceeds the maximum width")
		}
		c.one(index(at+".components", i), child)
	}
}

func (c *componentCheck) customID(at string, o object) {
	id := textOf(o, "custom_id")
	switch {
	case id == "":
		c.f.required(at + ".custom_id")
	case c.ids[id]:
		c.f.add(at+".custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated")
	}
	c.ids[id] = true
	c.f.longest(at+".custom_id", id, 100)
}

func (c *componentCheck) button(at string, o object) {
	c.f.longest(at+".label", textOf(o, "label"), 80)
	style, _ := o["style"].(float64)
	switch {
	case style < 1 || style > 6:
		c.f.add(at+".style", "BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3, 4, 5, 6}.")
	case style == 5:
		if textOf(o, "url") == "" {
			c.f.required(at + ".url")
		}
	case style != 6:
		c.customID(at, o)
	}
}

func (c *componentCheck) selectMenu(at string, o object) {
	c.customID(at, o)
	c.f.longest(at+".placeholder", textOf(o, "placeholder"), 150)
	if kindOf(o) != componentSelect {
		return
	}
	options := listOf(o, "options")
	c.f.between(at+".options", len(options), 1, 25)
	seen := map[string]bool{}
	for i, option := range options {
		value := textOf(option, "value")
		where := fmt.Sprintf("%s.options.%d", at, i)
		if seen[value] {
			c.f.add(where+".value", "SELECT_COMPONENT_OPTION_VALUE_DUPLICATED", "The specified option value is already used")
		}
		seen[value] = true
		c.f.between(where+".label", len([]rune(textOf(option, "label"))), 1, 100)
		c.f.between(where+".value", len([]rune(value)), 1, 100)
	}
}

// findComponent is the part of a message that has a custom id.
func findComponent(list []object, customID string) object {
	for _, o := range list {
		if textOf(o, "custom_id") == customID && customID != "" {
			return o
		}
		if found := findComponent(listOf(o, "components"), customID); found != nil {
			return found
		}
		for _, key := range []string{"accessory", "component"} {
			if child, ok := o[key].(map[string]any); ok {
				if found := findComponent([]object{child}, customID); found != nil {
					return found
				}
			}
		}
	}
	return nil
}
