package feed

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrUnknownType is the error of Parse for a type of a newer version; a client skips such
// an object.
var ErrUnknownType = errors.New("unknown event type")

// Parse reads what Encode wrote, possibly by another version.
func Parse(data []byte) (Item, error) {
	var head Head
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("read an event: %w", err)
	}
	item, err := parse(head.Type, data)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", head.Type, err)
	}
	return item, nil
}

func parse(t Type, data []byte) (Item, error) {
	switch t {
	case TypeSessionStarted:
		return into[SessionStarted](data)
	case TypeRunStarted:
		return into[RunStarted](data)
	case TypeUserMessage:
		return into[UserMessage](data)
	case TypeAssistantMessage:
		return into[AssistantMessage](data)
	case TypeRefused:
		return into[Refused](data)
	case TypeCleared:
		return into[Cleared](data)
	case TypeTextDelta:
		return into[TextDelta](data)
	case TypeThinkingDelta:
		return into[ThinkingDelta](data)
	case TypeToolCall:
		return into[ToolCall](data)
	case TypeToolProgress:
		return into[ToolProgress](data)
	case TypeToolResult:
		return into[ToolResult](data)
	case TypeApprovalRequired:
		return into[ApprovalRequired](data)
	case TypeApprovalResolved:
		return into[ApprovalResolved](data)
	case TypeSteered:
		return into[Steered](data)
	case TypeCompacted:
		return into[Compacted](data)
	case TypeCompleted:
		return into[Completed](data)
	case TypeError:
		return into[Error](data)
	case TypeTrace:
		return into[Trace](data)
	default:
		return nil, ErrUnknownType
	}
}

func into[T Item](data []byte) (Item, error) {
	var v T
	err := json.Unmarshal(data, &v)
	return v, err
}
