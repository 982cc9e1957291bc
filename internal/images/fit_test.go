package images

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

const megapixels = 1_000_000

func TestSniff(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ data, want string }{
		{"\x89PNG", PNG}, // B68, whatever was declared
		{"\xff\xd8\xff\xe0", JPEG},
		{"GIF87a", GIF},
		{"GIF89a", GIF},
		{"RIFF\x01\x02\x03\x04WEBP", WebP},
		{"RIFF\x01\x02\x03\x04WEB", ""},
		{"BM", ""},
		{"\xff\xd8", ""},
		{"", ""},
	} {
		if got := Sniff([]byte(test.data)); got != test.want {
			t.Errorf("%q: %q", test.data, got)
		}
	}
}

func TestFit(t *testing.T) {
	t.Parallel()
	small := Limits{Base64: 40_000, Edge: 100}
	for _, test := range []struct {
		name string
		data []byte
		kind string
		w, h int
	}{
		{"fits", pngOf(t, 100, 50, 0), PNG, 100, 50},
		{"fits", gifOf(t, 100, 50, 3), GIF, 100, 50},
		{"fits", unbase64(t, webpLossy), WebP, 1, 1},
		{"too wide", pngOf(t, 200, 50, 0), JPEG, 100, 25},
		{"too high", pngOf(t, 30, 300, 0), JPEG, 10, 100},
		{"thin", pngOf(t, 900, 1, 0), JPEG, 100, 1},
		{"jpeg", jpegOf(t, painted(150, 150, 0)), JPEG, 100, 100},
		{"first frame", gifOf(t, 200, 100, 3), JPEG, 100, 50},
	} {
		got, kind, w, h, err := Fit(test.data, small, megapixels)
		if err != nil || kind != test.kind || w != test.w || h != test.h {
			t.Errorf("%s: %s %d×%d %v", test.name, kind, w, h, err)
			continue
		}
		if kind != JPEG && !bytes.Equal(got, test.data) {
			t.Errorf("%s: changed for nothing", test.name)
		}
		s, err := inspect(bytes.NewReader(got), megapixels)
		if err != nil || s.Type != kind || s.Width != w || s.Height != h {
			t.Errorf("%s: it says %s %d×%d and is %+v, %v", test.name, kind, w, h, s, err)
		}
		again, _, _, _, _ := Fit(test.data, small, megapixels)
		if !bytes.Equal(got, again) {
			t.Errorf("%s: twice is not the same", test.name)
		}
		twice, _, _, _, _ := Fit(got, small, megapixels)
		if !bytes.Equal(got, twice) {
			t.Errorf("%s: what fits is changed again", test.name)
		}
	}
}

func TestFitDefaults(t *testing.T) {
	t.Parallel()
	data := jpegOf(t, painted(1600, 400, 0))
	got, kind, w, h, err := Fit(data, Limits{}, 40*megapixels)
	if err != nil || kind != JPEG || w != 1568 || h != 392 || base64.StdEncoding.EncodedLen(len(got)) > 5<<20 {
		t.Errorf("%s %d×%d %v", kind, w, h, err)
	}
}

// TestFitTriesHarder: quality falls first, then size, then it gives up.
func TestFitTriesHarder(t *testing.T) {
	t.Parallel()
	data := pngOf(t, 120, 120, 1)
	sizes := map[int]bool{}
	last := 1 << 30
	for limit := 60_000; limit > 1000; limit = limit * 9 / 10 {
		got, _, w, _, err := Fit(data, Limits{Base64: limit, Edge: 120}, megapixels)
		if errors.Is(err, ErrTooLarge) {
			break
		}
		if err != nil || base64.StdEncoding.EncodedLen(len(got)) > limit || len(got) > last && last < len(data) {
			t.Fatalf("limit %d: %d bytes, %v", limit, len(got), err)
		}
		last, sizes[w] = len(got), true
	}
	for _, w := range []int{120, 96, 76} {
		if !sizes[w] {
			t.Errorf("never %d wide: %v", w, sizes)
		}
	}
	if _, _, _, _, err := Fit(data, Limits{Base64: 500}, megapixels); !errors.Is(err, ErrTooLarge) {
		t.Errorf("500 bytes: %v", err)
	}
}

// TestShrink: averages of areas are exact, transparency falls on white.
func TestShrink(t *testing.T) {
	t.Parallel()
	src := image.NewNRGBA(image.Rect(5, 5, 9, 7)) // 4×2, not at the origin
	for i, c := range []color.NRGBA{{0, 0, 0, 255}, {100, 0, 0, 255}, {0, 0, 0, 0}, {0, 0, 0, 0}, {200, 0, 0, 255}, {100, 0, 0, 255}, {0, 0, 0, 0}, {0, 0, 0, 255}} {
		src.SetNRGBA(5+i%4, 5+i/4, c)
	}
	got := shrink(src, src.Bounds(), 2, 1)
	want := []color.RGBA{{100, 0, 0, 255}, {191, 191, 191, 255}}
	for x, c := range want {
		if got.RGBAAt(x, 0) != c {
			t.Errorf("%d: %v, want %v", x, got.RGBAAt(x, 0), c)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		w, h := rapid.IntRange(1, 40).Draw(t, "w"), rapid.IntRange(1, 40).Draw(t, "h")
		c := color.RGBA{rapid.Byte().Draw(t, "r"), rapid.Byte().Draw(t, "g"), 7, 255}
		flat := image.NewRGBA(image.Rect(0, 0, w, h))
		for i := range w * h {
			flat.SetRGBA(i%w, i/w, c)
		}
		tw, th := rapid.IntRange(1, w).Draw(t, "tw"), rapid.IntRange(1, h).Draw(t, "th")
		small := shrink(flat, flat.Bounds(), tw, th)
		for i := range tw * th {
			if small.RGBAAt(i%tw, i/tw) != c {
				t.Fatalf("%d×%d to %d×%d: pixel %d is %v, not %v", w, h, tw, th, i, small.RGBAAt(i%tw, i/tw), c)
			}
		}
	})
}

// exif is an APP1 segment that says how a photograph is turned.
func exif(turn uint16, order binary.ByteOrder) []byte {
	tiff := []byte("II*\x00\x08\x00\x00\x00")
	if order == binary.BigEndian {
		tiff = []byte("MM\x00*\x00\x00\x00\x08")
	}
	u16 := func(v uint16) { tiff = append(tiff, 0, 0); order.PutUint16(tiff[len(tiff)-2:], v) }
	u32 := func(v uint32) { tiff = append(tiff, 0, 0, 0, 0); order.PutUint32(tiff[len(tiff)-4:], v) }
	u16(2)
	u16(0x010f) // another tag first
	u16(2)
	u32(1)
	u32(0)
	u16(0x0112)
	u16(3)
	u32(1)
	u16(turn)
	u16(0)
	u32(0)
	body := append([]byte("Exif\x00\x00"), tiff...)
	return append([]byte{0xff, 0xe1, byte((len(body) + 2) >> 8), byte(len(body) + 2)}, body...)
}

// TestFitTurns: a photograph that says how it is to be turned stays upright when
// it loses its EXIF.
func TestFitTurns(t *testing.T) {
	t.Parallel()
	// Red is the corner at the top left of the stored picture, which is 200×100.
	img := image.NewRGBA(image.Rect(0, 0, 200, 100))
	for i := range 200 * 100 {
		img.SetRGBA(i%200, i/200, color.RGBA{255, 255, 255, 255})
	}
	for i := range 100 * 50 {
		img.SetRGBA(i%100, i/100, color.RGBA{255, 0, 0, 255})
	}
	plain := jpegOf(t, img)
	for turn, corner := range map[uint16]image.Point{1: {0, 0}, 2: {1, 0}, 3: {1, 1}, 4: {0, 1}, 5: {0, 0}, 6: {1, 0}, 7: {1, 1}, 8: {0, 1}, 9: {0, 0}} {
		for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
			data := slices.Concat(plain[:2], exif(turn, order), plain[2:])
			got, _, w, h, err := Fit(data, Limits{Edge: 100}, megapixels)
			if err != nil {
				t.Fatal(err)
			}
			if upright := turn < 5 || turn > 8; (w == 100) != upright || (h == 100) == upright {
				t.Errorf("turn %d: %d×%d", turn, w, h)
			}
			out, err := jpeg.Decode(bytes.NewReader(got))
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []image.Point{{0, 0}, {1, 0}, {0, 1}, {1, 1}} {
				_, g, _, _ := out.At(w/4+c.X*w/2, h/4+c.Y*h/2).RGBA()
				if red := g < 0x8000; red != (c == corner) {
					t.Errorf("turn %d: corner %v is red: %v", turn, c, red)
				}
			}
		}
	}
}

// bomb is a small PNG that claims to be large.
func bomb(w, h uint32, depth byte) []byte {
	head := binary.BigEndian.AppendUint32([]byte("IHDR"), w)
	head = append(binary.BigEndian.AppendUint32(head, h), depth, 6, 0, 0, 0)
	out := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), head...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(head))
}

func TestBombs(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"png":            bomb(60_000, 60_000, 8),
		"png, wide":      bomb(1<<31-1, 1, 8),
		"gif":            []byte("GIF89a\xff\xff\xff\xff\x00\x00\x00,"),
		"jpeg":           []byte("\xff\xd8\xff\xc0\x00\x11\x08\xff\xff\xff\xff\x03\x01\x22\x00\x02\x11\x01\x03\x11\x01\xff\xda\x00\x02"),
		"webp":           []byte("RIFF\x1a\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\xff\x7f\x00\xff\x7f\x00"),
		"webp, lossless": []byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x05\x00\x00\x00\x2f\xff\xff\xff\x0f\x00"),
	} {
		if _, _, _, _, err := Fit(data, Limits{}, 40*megapixels); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Within the pixels, but each of them costs more.
	progressive := []byte("\xff\xd8\xff\xc2\x00\x11\x08\x17\x70\x17\x70\x03\x01\x11\x00\x02\x11\x01\x03\x11\x01\xff\xda\x00\x02")
	for name, data := range map[string][]byte{"16 bits": bomb(6000, 6000, 16), "progressive": progressive} {
		if _, _, _, _, err := Fit(data, Limits{}, 36*megapixels*3/4); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, _, _, err := Fit(progressive, Limits{}, 36*megapixels); !errors.Is(err, ErrTooLarge) {
		t.Errorf("progressive within the pixels: %v", err)
	}
}

// FuzzFit: whatever the bytes, no panic; and what comes out fits and is what it says.
func FuzzFit(f *testing.F) {
	for _, data := range [][]byte{pngOf(f, 40, 30, 0), jpegOf(f, painted(40, 30, 0)), gifOf(f, 40, 30, 2), unbase64(f, webpLossy), unbase64(f, webpLossless),
		bomb(60_000, 60_000, 8), slices.Concat([]byte("\xff\xd8"), exif(6, binary.BigEndian), jpegOf(f, painted(9, 9, 0))[2:]), []byte("GIF89a"), nil} {
		f.Add(data)
	}
	var deep bytes.Buffer
	if err := png.Encode(&deep, image.NewNRGBA64(image.Rect(0, 0, 20, 20))); err != nil {
		f.Fatal(err)
	}
	f.Add(deep.Bytes())
	limits := Limits{Base64: 20_000, Edge: 16}
	f.Fuzz(func(t *testing.T, data []byte) {
		segments(data)
		got, kind, w, h, err := Fit(data, limits, 100_000)
		if err != nil {
			return
		}
		s, err := inspect(bytes.NewReader(got), 100_000)
		if err != nil || s.Type != kind || s.Width != w || s.Height != h || !limits.fits(int64(len(got)), w, h) {
			t.Fatalf("%s %d×%d of %d bytes is %+v, %v", kind, w, h, len(got), s, err)
		}
	})
}
