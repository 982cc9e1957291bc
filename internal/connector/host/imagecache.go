package host

import (
	"context"

	"chorus/internal/chat"
	"chorus/internal/journal"
)

// CachedImage implements connector.Files.
func (h *Backend) CachedImage(address string) ([]byte, bool) {
	if h.imageCacheBytes() == 0 {
		return nil, false
	}
	return h.App.Images.Get(address)
}

// CacheImage implements connector.Files. A failure to write the cache only costs a download.
func (h *Backend) CacheImage(address string, data []byte) {
	if err := h.App.Images.Put(address, data, h.imageCacheBytes()); err != nil {
		h.App.Logs.LogOnce("fetched pictures cannot be kept: "+err.Error(), "image cache")
	}
}

func (h *Backend) imageCacheBytes() int64 {
	bot, err := h.App.Settings.Bot("")
	if err != nil {
		return 0 // a configuration mistake is reported elsewhere
	}
	return int64(bot.ImageCacheMB) << 20
}

// forgottenFiles returns the addresses of files whose message an arrival erases. They
// are read before it does, because the journal then forgets them.
func (h *Backend) forgottenFiles(ctx context.Context, a journal.Arrival) []string {
	var out []string
	for _, c := range a.Commits {
		for _, ev := range c.Events {
			deleted, ok := ev.Body.(chat.Deleted)
			if !ok || !deleted.Forget {
				continue
			}
			said, err := h.DB.Event(ctx, c.Thread, deleted.Seq)
			if err != nil {
				continue
			}
			var blocks chat.Blocks
			switch b := said.Body.(type) {
			case chat.Received:
				blocks = b.Blocks
			case chat.Steered:
				blocks = b.Blocks
			}
			for _, b := range blocks {
				if f, ok := b.(chat.File); ok && f.Source != "" {
					out = append(out, f.Source)
				}
			}
		}
	}
	return out
}
