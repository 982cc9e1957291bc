package documents

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
)

// Seal encrypts secret documents with a key that each machine is given, so that reading the
// database, or a backup of it, does not reveal them. The same text under the same name is always
// encrypted the same way, so that copies can be compared without decrypting them. This reveals
// only whether a secret has returned to an earlier value.
type Seal struct{ naming, sealing []byte }

// shortestKey is the length of 128 random bits in hexadecimal digits.
const shortestKey = 32

// NewSeal returns a Seal for a key, a random text.
func NewSeal(key string) (*Seal, error) {
	if len(key) < shortestKey {
		return nil, fmt.Errorf("the key has %d characters; make a random one of %d or more: openssl rand -hex 32", len(key), shortestKey)
	}
	s := &Seal{}
	for purpose, to := range map[string]*[]byte{"chorus documents: salt": &s.naming, "chorus documents: key": &s.sealing} {
		made, err := hkdf.Key(sha256.New, []byte(key), nil, purpose, sha256.Size)
		if err != nil {
			return nil, err
		}
		*to = made
	}
	return s, nil
}

// sealedText begins every encrypted text. The salt and the AES-GCM output follow.
const sealedText = "chorus-sealed-1\n"

// ErrSealed means that a document cannot be decrypted with this machine's key.
var ErrSealed = errors.New("it is encrypted with a key that this machine does not have; give it the CHORUS_SECRETS_KEY of the others")

func isSealed(text []byte) bool { return bytes.HasPrefix(text, []byte(sealedText)) }

// cipher returns the cipher for a single text. Its key is derived from the salt,
// which is derived from the text, so no key is used for two texts.
func (s *Seal) cipher(salt []byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, s.sealing, salt, "one document", sha256.Size)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func (s *Seal) seal(name string, text []byte) ([]byte, error) {
	mac := hmac.New(sha256.New, s.naming)
	fmt.Fprintf(mac, "%d %s ", len(name), name)
	mac.Write(text)
	salt := mac.Sum(nil)
	aead, err := s.cipher(salt)
	if err != nil {
		return nil, err
	}
	return aead.Seal(append([]byte(sealedText), salt...), make([]byte, aead.NonceSize()), text, []byte(name)), nil
}

func (s *Seal) open(name string, text []byte) ([]byte, error) {
	rest := text[len(sealedText):]
	if len(rest) < sha256.Size {
		return nil, ErrSealed
	}
	aead, err := s.cipher(rest[:sha256.Size])
	if err != nil {
		return nil, err
	}
	out, err := aead.Open(nil, make([]byte, aead.NonceSize()), rest[sha256.Size:], []byte(name))
	if err != nil {
		return nil, ErrSealed
	}
	if out == nil {
		out = []byte{}
	}
	return out, nil
}
