package chat

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
)

// ErrLost says that the bytes of a blob are not there any more, or are not what they were.
// Whoever shows them shows a placeholder instead: trying again does not help.
var ErrLost = errors.New("its bytes are lost")

// Blob is bytes by their SHA-256 in hex.
type Blob struct {
	Hash string
	Data []byte
}

// NewBlob names bytes by their hash.
func NewBlob(data []byte) Blob {
	sum := sha256.Sum256(data)
	return Blob{Hash: hex.EncodeToString(sum[:]), Data: data}
}

// ImageType is the media type of an image that models can see, "" for anything else. The
// first 12 bytes decide, not the name.
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
