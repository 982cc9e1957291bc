package chat

import (
	"bytes"
	"errors"

	"chorus/internal/digest"
)

// ErrLost says that the bytes of a blob are missing or damaged. Trying again
// does not help, so callers show a placeholder instead.
var ErrLost = errors.New("its bytes are lost")

// Blob holds bytes and their SHA-256 in hex.
type Blob struct {
	Hash string
	Data []byte
}

// NewBlob returns a Blob for data, named by its hash.
func NewBlob(data []byte) Blob {
	return Blob{Hash: digest.Of(data), Data: data}
}

// ImageType returns the media type of an image that models can see, or "" for
// anything else. It looks at the first 12 bytes and ignores the name.
func ImageType(start []byte) string {
	switch {
	case bytes.HasPrefix(start, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(start, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(start, []byte("GIF87a")), bytes.HasPrefix(start, []byte("GIF89a")):
		return "image/gif"
	case len(start) >= 12 && string(start[:4]) == "RIFF" && string(start[8:12]) == "WEBP":
		return "image/webp"
	}
	return ""
}
