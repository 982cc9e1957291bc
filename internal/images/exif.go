package images

import (
	"bytes"
	"encoding/binary"
)

// photo is what the segments of a JPEG say besides its size.
type photo struct {
	turn        int  // EXIF orientation, 1 to 8; 1 is upright
	progressive bool // decoding keeps all coefficients in memory
}

// segments reads a JPEG's segments up to the first scan. It stops at
// anything invalid, which only loses the orientation.
func segments(data []byte) photo {
	p := photo{turn: 1}
	if len(data) < 2 {
		return p
	}
	for data = data[2:]; len(data) >= 4 && data[0] == 0xff; {
		mark := data[1]
		if mark == 0xff { // padding
			data = data[1:]
			continue
		}
		size := int(binary.BigEndian.Uint16(data[2:]))
		if mark == 0xda || size < 2 || len(data) < 2+size {
			break
		}
		body := data[4 : 2+size]
		switch {
		case mark == 0xc2:
			p.progressive = true
		case mark == 0xe1 && bytes.HasPrefix(body, []byte("Exif\x00\x00")):
			if turn := orientation(body[6:]); turn != 0 {
				p.turn = turn
			}
		}
		data = data[2+size:]
	}
	return p
}

// orientation finds tag 0x0112 in the first directory of a TIFF header, or returns 0.
func orientation(tiff []byte) int {
	if len(tiff) < 8 {
		return 0
	}
	var order binary.ByteOrder = binary.LittleEndian
	switch string(tiff[:2]) {
	case "II":
	case "MM":
		order = binary.BigEndian
	default:
		return 0
	}
	at := int64(order.Uint32(tiff[4:]))
	if at < 8 || at+2 > int64(len(tiff)) {
		return 0
	}
	count := int(order.Uint16(tiff[at:]))
	for entry := tiff[at+2:]; count > 0 && len(entry) >= 12; count, entry = count-1, entry[12:] {
		if order.Uint16(entry) != 0x0112 || order.Uint16(entry[2:]) != 3 {
			continue
		}
		if turn := int(order.Uint16(entry[8:])); turn >= 1 && turn <= 8 {
			return turn
		}
		return 0
	}
	return 0
}
