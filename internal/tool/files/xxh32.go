package files

import (
	"encoding/binary"
	"math/bits"
)

// The primes of XXH32.
const (
	xxPrime1 uint32 = 2654435761
	xxPrime2 uint32 = 2246822519
	xxPrime3 uint32 = 3266489917
	xxPrime4 uint32 = 668265263
	xxPrime5 uint32 = 374761393
)

// xxh32 returns the 32-bit xxHash of a text, from which line hashes are made.
func xxh32(text string, seed uint32) uint32 {
	rest := []byte(text)
	h := seed + xxPrime5
	if len(rest) >= 16 {
		lanes := [4]uint32{seed + xxPrime1 + xxPrime2, seed + xxPrime2, seed, seed - xxPrime1}
		for ; len(rest) >= 16; rest = rest[16:] {
			for i := range lanes {
				lanes[i] = bits.RotateLeft32(lanes[i]+binary.LittleEndian.Uint32(rest[4*i:])*xxPrime2, 13) * xxPrime1
			}
		}
		h = bits.RotateLeft32(lanes[0], 1) + bits.RotateLeft32(lanes[1], 7) + bits.RotateLeft32(lanes[2], 12) + bits.RotateLeft32(lanes[3], 18)
	}
	h += uint32(len(text))
	for ; len(rest) >= 4; rest = rest[4:] {
		h = bits.RotateLeft32(h+binary.LittleEndian.Uint32(rest)*xxPrime3, 17) * xxPrime4
	}
	for _, b := range rest {
		h = bits.RotateLeft32(h+uint32(b)*xxPrime5, 11) * xxPrime1
	}
	h = (h ^ h>>15) * xxPrime2
	h = (h ^ h>>13) * xxPrime3
	return h ^ h>>16
}
