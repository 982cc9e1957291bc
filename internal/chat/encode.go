package chat

import (
	"encoding/json"
	"fmt"
	"time"

	"chorus/internal/text"
)

// EncodeBody returns a body in the form the store keeps.
func EncodeBody(body Body) ([]byte, error) {
	data, err := text.JSON(body)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", body.Kind(), err)
	}
	return data, nil
}

// DecodeBody reads what EncodeBody wrote. An unknown kind is an error: a newer Chorus wrote the journal.
func DecodeBody(kind Kind, data []byte) (Body, error) {
	body, err := decodeBody(kind, data)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", kind, err)
	}
	return body, nil
}

func decodeBody(kind Kind, data []byte) (Body, error) {
	switch kind {
	case KindReceived:
		return into[Received](data)
	case KindRefused:
		return into[Refused](data)
	case KindEdited:
		return into[Edited](data)
	case KindDeleted:
		return into[Deleted](data)
	case KindReacted:
		return into[Reacted](data)
	case KindImported:
		return into[Imported](data)
	case KindRunStarted:
		return into[RunStarted](data)
	case KindTook:
		return into[Took](data)
	case KindAsked:
		return into[Asked](data)
	case KindSaid:
		return into[Said](data)
	case KindToolBegan:
		return into[ToolBegan](data)
	case KindToolRan:
		return into[ToolRan](data)
	case KindDeferred:
		return into[Deferred](data)
	case KindSettled:
		return into[Settled](data)
	case KindApprovalAsked:
		return into[ApprovalAsked](data)
	case KindApprovalAnswered:
		return into[ApprovalAnswered](data)
	case KindApprovalNoted:
		return into[ApprovalNoted](data)
	case KindSteered:
		return into[Steered](data)
	case KindAbortAsked:
		return into[AbortAsked](data)
	case KindNoted:
		return into[Noted](data)
	case KindRolled:
		return into[Rolled](data)
	case KindCompacted:
		return into[Compacted](data)
	case KindCleared:
		return into[Cleared](data)
	case KindRunEnded:
		return into[RunEnded](data)
	case KindForked:
		return into[Forked](data)
	default:
		return nil, fmt.Errorf("unknown kind; this journal needs a newer chorus")
	}
}

type eventJSON struct {
	Thread     ThreadID        `json:"thread,omitempty"`
	Seq        int64           `json:"seq"`
	At         time.Time       `json:"at"`
	Kind       Kind            `json:"kind"`
	Run        string          `json:"run,omitempty"`
	Who        string          `json:"who,omitempty"`
	Platform   string          `json:"platform,omitempty"`
	PlatformID string          `json:"platformId,omitempty"`
	Version    int             `json:"version,omitempty"`
	Body       json.RawMessage `json:"body"`
}

// MarshalJSON writes the event for exports and test fixtures.
func (e Event) MarshalJSON() ([]byte, error) {
	body, err := EncodeBody(e.Body)
	if err != nil {
		return nil, err
	}
	return text.JSON(eventJSON{e.Thread, e.Seq, e.At, e.Body.Kind(), e.Run, e.Who, e.Platform, e.PlatformID, e.Version, body})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (e *Event) UnmarshalJSON(data []byte) error {
	var j eventJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	body, err := DecodeBody(j.Kind, j.Body)
	if err != nil {
		return err
	}
	*e = Event{j.Thread, j.Seq, j.At, j.Run, j.Who, body, j.Platform, j.PlatformID, j.Version}
	return nil
}
