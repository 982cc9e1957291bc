package peernotify

import (
	"encoding/json"
)

// everything in a payload means that everything should be checked. It is not a topic.
const everything = "*"

// Payloads returns the messages for the topics: each is a JSON list of the sender and topics, and
// none is longer than most bytes. It is JSON because thread names may contain any character.
func Payloads(from string, topics []Topic, all bool, most int) [][]byte {
	if all {
		return [][]byte{encode(from, everything)}
	}
	var out [][]byte
	var names []string
	empty := len(encode(from))
	size := empty
	for _, t := range topics {
		n := len(encode(string(t))) - 1 // a comma replaces two brackets
		if size+n > most && len(names) > 0 {
			out = append(out, encode(append([]string{from}, names...)...))
			names, size = nil, empty
		}
		names, size = append(names, string(t)), size+n
	}
	if len(names) > 0 {
		out = append(out, encode(append([]string{from}, names...)...))
	}
	return out
}

func encode(words ...string) []byte {
	b, err := json.Marshal(words)
	if err != nil {
		return nil // strings always encode
	}
	return b
}

// PutPayload adds the topics of a payload. Payloads are not trusted: only valid topics count.
func (s *Subscription) PutPayload(own string, payload []byte) {
	var words []string
	if err := json.Unmarshal(payload, &words); err != nil || len(words) == 0 || words[0] == own {
		return
	}
	for _, word := range words[1:] {
		if word == everything {
			s.PutAll()
		} else if topic, err := ParseTopic(word); err == nil {
			s.Put(topic)
		}
	}
}
