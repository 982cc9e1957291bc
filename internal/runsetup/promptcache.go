package runsetup

import (
	"context"
	"slices"
	"sync"
	"time"

	"chorus/internal/model"
)

// maxPromptHeads is how many prompt heads are kept in memory.
const maxPromptHeads = 16

// promptCache holds the most recently used prompt heads by hash, newest first. All conversations
// of an agent share one head, and with it what providers computed from it.
type promptCache struct {
	mu   sync.Mutex
	list []*knownHead
}

type knownHead struct {
	hash string
	head *model.Head
}

// at returns the head with this hash, or nil if it is not cached.
func (h *promptCache) at(hash string) *model.Head {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.list, func(k *knownHead) bool { return k.hash == hash })
	if i < 0 {
		return nil
	}
	found := h.list[i]
	h.list = slices.Insert(slices.Delete(h.list, i, i+1), 0, found)
	return found.head
}

func (h *promptCache) keep(hash string, head *model.Head) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = slices.Insert(h.list, 0, &knownHead{hash, head})
	h.list = slices.Delete(h.list, min(maxPromptHeads, len(h.list)), len(h.list))
}

// Head loads the system prompt and tools that a run was started with.
func (s *Setup) Head(hash string) (*model.Head, error) {
	if head := s.promptHeads.at(hash); head != nil {
		return head, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	data, err := s.DB.Blob(ctx, hash)
	if err != nil {
		return nil, err
	}
	head, err := model.ParseHead(data)
	if err == nil {
		s.promptHeads.keep(hash, head)
	}
	return head, err
}
