package llmsim

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"slices"
	"strings"
)

// appendFrame writes one message of AWS's event stream: sizes, their checksum, headers, payload, and the checksum of all.
func appendFrame(buf []byte, payload []byte, headers ...string) []byte {
	var head []byte
	for i := 0; i < len(headers); i += 2 {
		head = append(append(head, byte(len(headers[i]))), headers[i]...)
		head = append(head, 7) // a string
		head = binary.BigEndian.AppendUint16(head, uint16(len(headers[i+1])))
		head = append(head, headers[i+1]...)
	}
	begin := len(buf)
	buf = binary.BigEndian.AppendUint32(buf, uint32(16+len(head)+len(payload)))
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(head)))
	buf = binary.BigEndian.AppendUint32(buf, crc32.ChecksumIEEE(buf[begin:]))
	buf = append(append(buf, head...), payload...)
	return binary.BigEndian.AppendUint32(buf, crc32.ChecksumIEEE(buf[begin:]))
}

// awsEvent is a frame of an event.
func awsEvent(name string, payload []byte) frame {
	return frame{raw: appendFrame(nil, payload, ":event-type", name, ":content-type", "application/json", ":message-type", "event")}
}

// awsException is a frame that reports an error. Errors of other providers are translated to AWS's.
func awsException(f *Fault) frame {
	name := f.Type
	switch name {
	case "", "overloaded_error", "server_error":
		name = "serviceUnavailableException"
	case "rate_limit_error":
		name = "throttlingException"
	case "invalid_request_error":
		name = "validationException"
	}
	payload := encode(obj{"message": cmp.Or(f.Message, "Overloaded")})
	return frame{raw: appendFrame(nil, payload, ":exception-type", name, ":content-type", "application/json", ":message-type", "exception")}
}

// spoiled is a frame with a wrong checksum.
func spoiled(f frame) frame {
	raw := slices.Clone(f.raw)
	raw[len(raw)-1] ^= 0xff
	return frame{raw: raw}
}

// chunkFrames wraps Anthropic's events in AWS's frames: base64 in JSON, with padding that hides the length of a token.
func chunkFrames(events []frame) []frame {
	out := make([]frame, len(events))
	for i, f := range events {
		out[i] = awsEvent("chunk", encode(obj{"bytes": f.data, "p": padding(i)}))
	}
	return out
}

func padding(i int) string { return strings.Repeat("abcdefghijklmnop", 4)[:8+i%40] }

// converseStops are Converse's stop reasons.
var converseStops = map[string]string{
	"end": "end_turn", "tools": "tool_use", "length": "max_tokens",
	"stop_sequence": "stop_sequence", "refusal": "content_filtered", "pause": "end_turn",
}

func converseUsage(u Usage) obj {
	return obj{
		"inputTokens": u.Input, "outputTokens": u.Output, "totalTokens": u.Input + u.Output + u.CacheRead + u.CacheWrite,
		"cacheReadInputTokens": u.CacheRead, "cacheWriteInputTokens": u.CacheWrite,
	}
}

// converseWhole is the answer without streaming.
func converseWhole(req Request, turn Turn, usage Usage) obj {
	content := []obj{}
	if turn.Thinking != "" || turn.Signature != "" {
		content = append(content, obj{"reasoningContent": obj{"reasoningText": obj{"text": turn.Thinking, "signature": turn.signature()}}})
	}
	if turn.Redacted != "" {
		content = append(content, obj{"reasoningContent": obj{"redactedContent": turn.Redacted}})
	}
	if text := turn.text(); text != "" {
		content = append(content, obj{"text": text})
	}
	for i, c := range turn.Calls {
		args := json.RawMessage(c.args())
		if !json.Valid(args) {
			args = json.RawMessage(`{}`)
		}
		content = append(content, obj{"toolUse": obj{"toolUseId": callID(Converse, req, c, i), "name": c.Name, "input": args}})
	}
	answer := obj{
		"output":     obj{"message": obj{"role": "assistant", "content": content}},
		"stopReason": converseStops[turn.stop()], "metrics": obj{"latencyMs": 1},
	}
	if !turn.NoUsage {
		answer["usage"] = converseUsage(usage)
	}
	return answer
}

// converseBuilder collects the frames of a stream.
type converseBuilder struct {
	frames []frame
	index  int
}

func (b *converseBuilder) add(event string, body obj) {
	body["p"] = padding(len(b.frames))
	b.frames = append(b.frames, awsEvent(event, encode(body)))
}

func (b *converseBuilder) delta(index int, delta obj) {
	b.add("contentBlockDelta", obj{"contentBlockIndex": index, "delta": delta})
}

func (b *converseBuilder) stop(index int) { b.add("contentBlockStop", obj{"contentBlockIndex": index}) }

// converseFrames is the answer as a stream. Only calls have a start of their own.
func converseFrames(req Request, turn Turn, usage Usage) []frame {
	b := &converseBuilder{}
	b.add("messageStart", obj{"role": "assistant"})
	end := func() { b.stop(b.index); b.index++ }
	if turn.Thinking != "" || turn.Signature != "" {
		for _, p := range pieces(turn.Thinking, turn.Chunk) {
			b.delta(b.index, obj{"reasoningContent": obj{"text": p}})
		}
		b.delta(b.index, obj{"reasoningContent": obj{"signature": turn.signature()}})
		end()
	}
	if turn.Redacted != "" {
		b.delta(b.index, obj{"reasoningContent": obj{"redactedContent": turn.Redacted}})
		end()
	}
	if text := turn.text(); text != "" {
		for _, p := range pieces(text, turn.Chunk) {
			b.delta(b.index, obj{"text": p})
		}
		end()
	}
	b.calls(req, turn)
	b.add("messageStop", obj{"stopReason": converseStops[turn.stop()]})
	if !turn.NoUsage {
		b.add("metadata", obj{"usage": converseUsage(usage), "metrics": obj{"latencyMs": 1}})
	}
	return b.frames
}

func (b *converseBuilder) calls(req Request, turn Turn) {
	begin := func(i int) {
		c := turn.Calls[i]
		b.add("contentBlockStart", obj{"contentBlockIndex": b.index + i, "start": obj{"toolUse": obj{"toolUseId": callID(Converse, req, c, i), "name": c.Name}}})
	}
	fragment := func(i int, s string) { b.delta(b.index+i, obj{"toolUse": obj{"input": s}}) }
	turn.eachCall(begin, fragment, func(i int) { b.stop(b.index + i) })
}
