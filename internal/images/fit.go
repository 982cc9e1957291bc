// Package images converts pictures to what models accept. A picture is a PNG, JPEG, GIF or WebP
// according to its own bytes, and its size is checked before anything is decoded.
package images

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
)

// Limits are what a provider accepts for one picture. Zero fields mean the default.
type Limits struct {
	Base64 int // bytes after base64
	Edge   int // pixels of the longer side
}

// Limits that suit every provider.
const (
	DefaultBase64 = 5 << 20
	DefaultEdge   = 1568 // above it providers scale down themselves
)

func (l Limits) filled() Limits {
	if l.Base64 <= 0 {
		l.Base64 = DefaultBase64
	}
	if l.Edge <= 0 {
		l.Edge = DefaultEdge
	}
	return l
}

func (l Limits) fits(size int64, w, h int) bool {
	return base64.StdEncoding.EncodedLen(int(size)) <= l.Base64 && max(w, h) <= l.Edge
}

// maxFrames limits an animation; a model sees only its first frame anyway.
const maxFrames = 1000

// tries are the qualities and sizes for re-encoding: first the quality is
// reduced, then the size. There are only five tries.
var tries = []struct{ quality, percent int }{{85, 100}, {70, 100}, {55, 100}, {55, 80}, {55, 64}}

// decodeWeight limits the cost of decoding, as a multiple of the largest number of pixels. A plain
// pixel counts once, one with 16 bits per colour twice, one of a progressive JPEG three times.
const decodeWeight = 2

// Fit converts a picture to what a provider accepts. A picture that fits is returned unchanged. Any
// other is made smaller and becomes an upright JPEG on white; from a GIF it takes the first frame.
// The same input gives the same bytes, so a prompt's prefix stays valid. limits are the provider's;
// most is the largest number of pixels to decode.
func Fit(data []byte, limits Limits, most int64) (fitted []byte, mediaType string, w, h int, err error) {
	limits = limits.filled()
	s, err := inspect(bytes.NewReader(data), most)
	if err != nil {
		return nil, "", 0, 0, err
	}
	if limits.fits(int64(len(data)), s.Width, s.Height) {
		return data, s.Type, s.Width, s.Height, nil
	}
	p := photo{turn: 1}
	if s.Type == JPEG {
		p = segments(data)
	}
	weight := int64(1)
	switch {
	case p.progressive:
		weight = 3
	case s.deep:
		weight = 2
	}
	if s.pixels()*weight > decodeWeight*most {
		return nil, "", 0, 0, fmt.Errorf("%w to be made smaller here: %d×%d pixels of a costly kind; make it smaller before", ErrTooLarge, s.Width, s.Height)
	}
	img, err := decode(s, bytes.NewReader(data))
	if err != nil {
		return nil, "", 0, 0, fmt.Errorf("make the picture smaller: %w", err)
	}
	screen := image.Rect(0, 0, s.Width, s.Height)
	if s.Type != GIF {
		screen = img.Bounds()
	}
	for _, try := range tries {
		tw, th := within(screen.Dx(), screen.Dy(), limits.Edge*try.percent/100, try.percent)
		small := turned(shrink(img, screen, tw, th), p.turn)
		var buf bytes.Buffer
		if err := jpeg.Encode(&buf, small, &jpeg.Options{Quality: try.quality}); err != nil {
			return nil, "", 0, 0, fmt.Errorf("make the picture smaller: %w", err)
		}
		b := small.Bounds()
		if limits.fits(int64(buf.Len()), b.Dx(), b.Dy()) {
			return buf.Bytes(), JPEG, b.Dx(), b.Dy(), nil
		}
	}
	return nil, "", 0, 0, fmt.Errorf("%w: %d×%d pixels do not fit into %d bytes even at low quality; make it smaller", ErrTooLarge, s.Width, s.Height, limits.Base64)
}

// within returns the largest size of the same shape that is not longer
// than edge and at most percent of the original.
func within(w, h, edge, percent int) (int, int) {
	edge = max(1, min(edge, max(w, h)*percent/100))
	if w >= h {
		return edge, max(1, (h*edge+w/2)/w)
	}
	return max(1, (w*edge+h/2)/h), edge
}

// shrink scales down by averaging areas, on white. It works row by row and in integers: a large
// photograph needs only one more row of memory than itself, and every machine gets the same pixels.
func shrink(src image.Image, screen image.Rectangle, w, h int) *image.RGBA {
	sw, sh := screen.Dx(), screen.Dy()
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	row := image.NewRGBA(image.Rect(0, 0, sw, 1))
	narrow := make([]uint64, w*3) // one source row, scaled to the width of the target
	sum := make([]uint64, w*3)    // the unfinished target row
	area := uint64(sw) * uint64(sh)
	white := image.NewUniform(color.White)
	for y, ty := 0, 0; y < sh; y++ {
		draw.Draw(row, row.Rect, white, image.Point{}, draw.Src)
		part := image.Rect(screen.Min.X, screen.Min.Y+y, screen.Max.X, screen.Min.Y+y+1).Intersect(src.Bounds())
		if !part.Empty() {
			draw.Draw(row, image.Rect(part.Min.X-screen.Min.X, 0, part.Max.X-screen.Min.X, 1), src, part.Min, draw.Over)
		}
		narrowRow(narrow, row.Pix, sw, w)
		// The source row covers y*h … (y+1)*h on a scale where a target row is sh long.
		for from, to := y*h, (y+1)*h; from < to; {
			end := min(to, (ty+1)*sh)
			for i, v := range narrow {
				sum[i] += v * uint64(end-from)
			}
			if from = end; end == (ty+1)*sh {
				putRow(out.Pix[ty*out.Stride:], sum, area)
				clear(sum)
				ty++
			}
		}
	}
	return out
}

// narrowRow averages a row of sw pixels into w pixels. Its sums are sw times the colours.
func narrowRow(narrow []uint64, pix []byte, sw, w int) {
	clear(narrow)
	for x, tx := 0, 0; x < sw; x++ {
		for from, to := x*w, (x+1)*w; from < to; {
			end := min(to, (tx+1)*sw)
			n := uint64(end - from)
			narrow[tx*3] += uint64(pix[x*4]) * n
			narrow[tx*3+1] += uint64(pix[x*4+1]) * n
			narrow[tx*3+2] += uint64(pix[x*4+2]) * n
			if from = end; end == (tx+1)*sw {
				tx++
			}
		}
	}
}

func putRow(pix []byte, sum []uint64, area uint64) {
	for i := 0; i < len(sum); i += 3 {
		at := i / 3 * 4
		pix[at], pix[at+1], pix[at+2] = byte((sum[i]+area/2)/area), byte((sum[i+1]+area/2)/area), byte((sum[i+2]+area/2)/area)
		pix[at+3] = 0xff
	}
}

// turned applies an EXIF orientation, which a re-encoded picture loses.
func turned(src *image.RGBA, turn int) *image.RGBA {
	if turn <= 1 || turn > 8 {
		return src
	}
	w, h := src.Rect.Dx(), src.Rect.Dy()
	size := image.Rect(0, 0, w, h)
	if turn >= 5 {
		size = image.Rect(0, 0, h, w)
	}
	out := image.NewRGBA(size)
	for y := range h {
		for x := range w {
			tx, ty := x, y
			switch turn {
			case 2:
				tx = w - 1 - x
			case 3:
				tx, ty = w-1-x, h-1-y
			case 4:
				ty = h - 1 - y
			case 5:
				tx, ty = y, x
			case 6:
				tx, ty = h-1-y, x
			case 7:
				tx, ty = h-1-y, w-1-x
			case 8:
				tx, ty = y, w-1-x
			}
			out.SetRGBA(tx, ty, src.RGBAAt(x, y))
		}
	}
	return out
}
