package render

import (
	"reflect"
	"testing"

	"chorus/internal/chat"
)

// What left the window before an answer is told with it.
func TestStepsSayWhatWasLeftOut(t *testing.T) {
	t.Parallel()
	got := StepsOf([]chat.Event{
		{Seq: 1, Run: "r", Body: chat.RunStarted{Run: "r"}},
		{Seq: 2, Run: "r", Body: chat.Rolled{KeepFrom: 4, Because: "3 messages are older than 24h"}},
	}, nil)
	if !reflect.DeepEqual(got.Left, []string{"3 messages are older than 24h"}) {
		t.Errorf("%+v", got)
	}
}
