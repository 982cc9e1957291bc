package peernotify

import (
	"encoding/json"
)

// everything stands in a payload for a look at all of it; it is no topic.
const everything = "*"

// Payloads are the messages that tell of the topics: each a JSON list of who sends it and what it is about, none
// longer than most bytes. JSON, because the names of threads may hold any character.
func Payloads(from string, topics []Topic, all bool, most int) [][]byte {
	if all {
		return [][]byte{encode(from, everything)}
	}
	var out [][]byte
	var names []string
	empty := len(encode(from))
	size := empty
	for _, t := range topics {
		n := len(encode(string(t))) - 1 // a comma in the place of two brackets
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

// PutPayload adds what a payload tells of. What somebody else has put into it is not trusted: only topics count.
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
