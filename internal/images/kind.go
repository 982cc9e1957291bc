package images

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/webp"
)

// Errors that callers may want to distinguish. Each is wrapped in a sentence that says what to do.
var (
	ErrNotImage = errors.New("not a picture that a model can take")
	ErrTooLarge = errors.New("the picture is too large")
)

// The media types that every provider accepts. No others are supported.
const (
	PNG  = "image/png"
	JPEG = "image/jpeg"
	GIF  = "image/gif"
	WebP = "image/webp"
)

// sniffLen is how many bytes Sniff needs.
const sniffLen = 12

// Sniff determines the type from the first bytes, whatever a header or a
// name claims. It returns "" for unsupported types.
func Sniff(data []byte) string {
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG")):
		return PNG
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return JPEG
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return GIF
	case len(data) >= sniffLen && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return WebP
	default:
		return ""
	}
}

// shape is what the header of a picture says.
type shape struct {
	Type          string
	Width, Height int
	deep          bool // 16 bits per colour
}

func (s shape) pixels() int64 { return int64(s.Width) * int64(s.Height) }

// inspect reads the header and, for a GIF, the list of frames, and refuses what
// would be too large when decoded. It decodes nothing.
func inspect(r io.ReadSeeker, maxPixels int64) (shape, error) {
	head := make([]byte, sniffLen)
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return shape{}, err
	}
	s := shape{Type: Sniff(head[:n])}
	if s.Type == "" {
		return shape{}, fmt.Errorf("%w: the bytes are neither PNG, JPEG, GIF nor WebP; convert it to one of them", ErrNotImage)
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return shape{}, err
	}
	config, err := header(s.Type, r)
	if err != nil {
		return shape{}, fmt.Errorf("%w: broken %s: %w", ErrNotImage, s.Type, err)
	}
	s.Width, s.Height = config.Width, config.Height
	s.deep = config.ColorModel == color.RGBA64Model || config.ColorModel == color.NRGBA64Model
	if s.Width <= 0 || s.Height <= 0 {
		return shape{}, fmt.Errorf("%w: it is %d×%d pixels", ErrNotImage, s.Width, s.Height)
	}
	if s.pixels() > maxPixels {
		return shape{}, fmt.Errorf("%w: %d×%d pixels, the limit is %d million; make it smaller", ErrTooLarge, s.Width, s.Height, maxPixels/1e6)
	}
	if s.Type != GIF {
		return s, nil
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return shape{}, err
	}
	frames, err := gifFrames(bufio.NewReader(r), maxFrames)
	switch {
	case err != nil:
		return shape{}, fmt.Errorf("%w: broken %s: %w", ErrNotImage, s.Type, err)
	case frames == 0:
		return shape{}, fmt.Errorf("%w: a GIF without a frame", ErrNotImage)
	case frames > maxFrames:
		return shape{}, fmt.Errorf("%w: more than %d frames; send one frame of it", ErrTooLarge, maxFrames)
	}
	return s, nil
}

func header(kind string, r io.Reader) (config image.Config, err error) {
	defer guard(&err)
	switch kind {
	case PNG:
		return png.DecodeConfig(r)
	case JPEG:
		return jpeg.DecodeConfig(r)
	case GIF:
		return gif.DecodeConfig(r)
	default:
		return webp.DecodeConfig(r)
	}
}

// decode decodes a picture that inspect has accepted; from a GIF it
// takes the first frame, placed on its screen.
func decode(s shape, r io.Reader) (img image.Image, err error) {
	defer guard(&err)
	switch s.Type {
	case PNG:
		img, err = png.Decode(r)
	case JPEG:
		img, err = jpeg.Decode(r)
	case GIF:
		img, err = gif.Decode(r)
	default:
		img, err = webp.Decode(r)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: broken %s: %w", ErrNotImage, s.Type, err)
	}
	return img, nil
}

// guard turns a decoder's panic into an error. The bytes are untrusted and must not crash the process.
func guard(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: the decoder failed: %v", ErrNotImage, r)
	}
}

// gifFrames counts the frames without decoding them, and stops above most. In a file that ends
// early it counts the frames that are there, since browsers show those too.
func gifFrames(r *bufio.Reader, most int) (int, error) {
	head := make([]byte, 13)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, err
	}
	if err := skipColours(r, head[10]); err != nil {
		return 0, err
	}
	frames := 0
	for frames <= most {
		mark, err := r.ReadByte()
		if err != nil {
			return frames, ended(err)
		}
		switch mark {
		case 0x21: // an extension: its label, then blocks
			_, err = r.Discard(1)
		case 0x2c: // a frame: place and size, colours, code size, then blocks
			frames++
			err = skipFrame(r)
		case 0x3b:
			return frames, nil
		case 0x00: // padding that some programs leave
			continue
		default:
			return 0, fmt.Errorf("unknown block 0x%02x", mark)
		}
		if err == nil {
			err = skipBlocks(r)
		}
		if err != nil {
			return frames, ended(err)
		}
	}
	return frames, nil
}

func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

func skipFrame(r *bufio.Reader) error {
	place := make([]byte, 9)
	if _, err := io.ReadFull(r, place); err != nil {
		return err
	}
	if err := skipColours(r, place[8]); err != nil {
		return err
	}
	_, err := r.Discard(1)
	return err
}

// skipColours skips a colour table if the flags say that there is one.
func skipColours(r *bufio.Reader, flags byte) error {
	if flags&0x80 == 0 {
		return nil
	}
	_, err := r.Discard(3 << (1 + flags&7))
	return err
}

func skipBlocks(r *bufio.Reader) error {
	for {
		n, err := r.ReadByte()
		if err != nil || n == 0 {
			return err
		}
		if _, err := r.Discard(int(n)); err != nil {
			return err
		}
	}
}
