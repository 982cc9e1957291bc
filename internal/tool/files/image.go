package files

import (
	"fmt"
	"io"
	"path"

	"chorus/internal/chat"
	"chorus/internal/digest"
	"chorus/internal/tool"
)

const (
	maxImage = 5 << 20  // the most that providers accept
	maxPhoto = 20 << 20 // larger pictures are not scaled down
)

// Fit makes a picture small enough for models. The same input always gives the
// same output. The error says why a picture cannot be shown.
type Fit func(data []byte) (fitted []byte, media string, err error)

func (r *Roots) image(place Place, media string, in io.Reader, size int64) (tool.Result, error) {
	most := maxImage
	if r.Fit != nil {
		most = maxPhoto
	}
	data, err := io.ReadAll(io.LimitReader(in, int64(most)+1))
	if err != nil {
		return tool.Result{}, tool.Mistake(place.String() + " could not be read.")
	}
	if len(data) > most {
		return tool.Result{}, tool.Mistake(fmt.Sprintf("%s is too large to look at: %d bytes, at most %d. Make it smaller first.", place, max(size, int64(len(data))), most))
	}
	if r.Fit != nil {
		if data, media, err = r.Fit(data); err != nil {
			return tool.Result{}, tool.Mistake(fmt.Sprintf("%s cannot be looked at: %v.", place, err))
		}
	}
	hash := digest.Of(data)
	return tool.Result{
		Blocks: chat.Blocks{
			chat.Text{Text: fmt.Sprintf("[%s: %s, %d bytes]", place, media, len(data))},
			chat.Image{Blob: hash, MediaType: media, Name: path.Base(place.Path), Size: int64(len(data))},
		},
		Read:          []string{place.String()},
		Blobs:         []chat.Blob{{Hash: hash, Data: data}},
		UntrustedFrom: source(place),
	}, nil
}
