package participants

import (
	"runtime"
	"slices"
	"sync"
	"weak"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// memory keeps the turns that were made of groups of messages, so that a provider finds them
// encoded already. It does not keep messages alive: what was made of messages goes when they
// go, and everything goes when there is too much of it.
type memory struct {
	mu     sync.Mutex
	groups map[groupKey]group
	heads  map[weak.Pointer[model.Head]]heading
}

// mostGroups is enough for several long conversations. mostHeads is far more agents than one home has.
const (
	mostGroups = 4096
	mostHeads  = 64
)

// groupKey is a group and the turn before it, so it stands for everything before it.
type groupKey struct {
	before, first, last weak.Pointer[model.Message]
	kind                groupKind
	n                   int
}

type groupKind uint8

const (
	scriptGroup groupKind = iota
	captionGroup
	imageGroup
	captionedGroup // an image with its caption
	userGroup
	ownGroup
)

type group struct {
	members []weak.Pointer[model.Message]
	made    *model.Message
	after   ending
}

// ending says how the text so far ends, which decides what must precede more of it.
type ending struct {
	text bool // there is earlier text in the same turn
	own  bool // and it is the bot's own words
}

// turn returns the turn made of the messages after the turn before, creating
// it if needed. It is nil if there is nothing to say.
func (m *memory) turn(kind groupKind, before *model.Message, members []*model.Message, make func() (model.Role, chat.Blocks, ending)) (*model.Message, ending, error) {
	key := groupKey{weak.Make(before), weak.Make(members[0]), weak.Make(members[len(members)-1]), kind, len(members)}
	m.mu.Lock()
	known, ok := m.groups[key]
	m.mu.Unlock()
	if ok && slices.EqualFunc(known.members, members, func(w weak.Pointer[model.Message], p *model.Message) bool { return w.Value() == p }) {
		return known.made, known.after, nil
	}
	role, blocks, after := make()
	if len(blocks) == 0 {
		return nil, after, nil
	}
	made, err := model.NewMessage(role, chat.Participant{}, blocks)
	if err != nil {
		return nil, after, err
	}
	known = group{made: made, after: after}
	for _, member := range members {
		known.members = append(known.members, weak.Make(member))
	}
	m.mu.Lock()
	if m.groups == nil || len(m.groups) >= mostGroups {
		m.groups = map[groupKey]group{}
	}
	m.groups[key] = known
	m.mu.Unlock()
	runtime.AddCleanup(members[0], m.forget, key)
	return made, after, nil
}

func (m *memory) forget(key groupKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.groups, key)
}

// heading is what precedes the messages: the head, and fixed turns.
type heading struct {
	head  *model.Head
	turns []*model.Message
	marks []int
	tools map[string]model.ToolSpec
}

// heading returns what was made of a head, creating it if needed. A
// request without a head gets a new empty one each time.
func (m *memory) heading(of *model.Head, make func(*model.Head) (heading, error)) (heading, error) {
	if of == nil {
		return make(&model.Head{})
	}
	key := weak.Make(of)
	m.mu.Lock()
	known, ok := m.heads[key]
	m.mu.Unlock()
	if ok {
		return known, nil
	}
	made, err := make(of)
	if err != nil {
		return made, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.heads == nil || len(m.heads) >= mostHeads {
		m.heads = map[weak.Pointer[model.Head]]heading{}
	}
	m.heads[key] = made
	return made, nil
}
