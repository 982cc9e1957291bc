package compaction_test

import (
	"testing"

	"chorus/internal/agent/compaction"
	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/transcript"
)

// A window in which nothing can be left out is left as it is, unless the provider has said that it is too long: then the run ends.
func TestNothingToLeaveOut(t *testing.T) {
	t.Parallel()
	log := transcript.New(nil)
	plan, err := compaction.Make(log, &transcript.Run{}, &model.Head{})
	if err != nil || !plan.Nothing {
		t.Errorf("%+v %v", plan, err)
	}
	plan, err = compaction.Make(log, &transcript.Run{TooLong: 1}, &model.Head{})
	if err != nil || plan.Failure == nil || plan.Failure.Kind != string(model.TooLong) {
		t.Errorf("%+v %v", plan, err)
	}
}

// Half a summary is no answer and no summary; one that the model refuses to write leaves the mechanical one.
func TestWhatIsWrittenOfASummary(t *testing.T) {
	t.Parallel()
	var plan compaction.Plan
	if done, ok := plan.Answered(chat.Said{Step: 2, Blocks: chat.TextBlocks(" it was about tea ")}).(chat.Compacted); !ok || done.Summary != "it was about tea" || done.Step != 2 {
		t.Errorf("%+v", done)
	}
	for name, said := range map[string]chat.Said{
		"half":    {Partial: true, Blocks: chat.TextBlocks("it was ab")},
		"empty":   {Blocks: chat.TextBlocks(" ")},
		"refused": {Error: &chat.Failure{Kind: string(model.Refused), Final: true}},
	} {
		got, ok := plan.Answered(said).(chat.Said)
		if !ok || len(got.Blocks) > 0 || got.Error != nil && got.Error.Final || name != "half" && got.Error == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
