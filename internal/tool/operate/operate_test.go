package operate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/tool"
	"chorus/internal/tool/operate"
)

type cups interface {
	Fill(context.Context, operation.Caller, filling) (cup, error)
	Break(context.Context, operation.Caller, cup) (operation.None, error)
}

type cup struct {
	Name string `json:"name" maxLen:"9" doc:"its name"`
}

type filling struct {
	Text string   `json:"q" maxLen:"9" tool:"tea" doc:"which tea"`
	Size int      `json:"size,omitempty" min:"1" max:"9" doc:"how much"`
	Tags []string `json:"tags,omitempty" maxItems:"2" doc:"words"`
	Key  string   `json:"-" key:"true"`
}

type cupboard struct{ asked []string }

func (c *cupboard) Fill(_ context.Context, by operation.Caller, in filling) (cup, error) {
	c.asked = append(c.asked, fmt.Sprintf("%s %+v", by.Principal, in))
	switch in.Text {
	case "sand":
		return cup{}, operation.Errorf(operation.Conflict, "nobody drinks sand")
	case "fire":
		return cup{}, errors.New("the kitchen burns")
	}
	return cup{in.Text}, nil
}

func (c *cupboard) Break(context.Context, operation.Caller, cup) (operation.None, error) {
	return operation.None{}, nil
}

var all = operation.Collect([]operation.Any{
	operation.New(operation.Info{Name: "cup.fill", Help: "Fill a cup", Doc: "It gets cold.", Scope: operation.Chat, Effect: operation.Creates, Tool: "cup_fill"}, cups.Fill),
	operation.New(operation.Info{Name: "cup.break", Help: "Break a cup", Scope: operation.Admin, Effect: operation.Destroys, Tool: "cup_break"}, cups.Break),
	operations.Watch, // a stream is no tool
})

func TestToolsOfOperations(t *testing.T) {
	t.Parallel()
	h := &cupboard{}
	tools := operate.Tools(operate.Options{Executor: operation.NewLocal(operation.LocalOptions{Handlers: []any{h}}), Operations: all, Caller: func(context.Context) operation.Caller {
		return operation.Caller{Principal: chat.Principal{Kind: chat.LocalUser, ID: "ada"}, Scopes: []operation.Scope{operation.Chat}}
	}})
	if len(tools) != 2 {
		t.Fatalf("%d tools", len(tools))
	}
	spec := tools[0].Spec()
	var schema struct {
		Properties map[string]map[string]any
		Required   []string
	}
	if err := json.Unmarshal(spec.Schema, &schema); err != nil || len(schema.Properties) != 3 || schema.Required[0] != "tea" || schema.Properties["size"]["maximum"] != 9.0 {
		t.Errorf("%s, %v", spec.Schema, err)
	}
	if spec.Name != "cup_fill" || spec.Description != "Fill a cup. It gets cold." || spec.ReadOnly || spec.Risk != tool.Medium || tools[1].Spec().Risk != tool.High {
		t.Errorf("%+v", spec)
	}
	ctx := tool.WithCall(t.Context(), tool.Call{ID: "c1", Key: "thread/c1"})
	for args, want := range map[string]string{
		`{"tea":"black","size":2,"tags":["a"]}`: `{"name":"black"}`,
		`{"tea":"sand"}`:                        "nobody drinks sand",
		`{"tea":"black","size":99}`:             "size: it must be at most 9",
		`{"size":1}`:                            "tea: it is required",
		`{"tea":"black","q":"x"}`:               "there is no argument q",
		`{"tea":5}`:                             "tea: it does not fit",
		`[]`:                                    "must be a JSON object",
	} {
		got, err := tools[0].Run(ctx, []byte(args))
		text := fmt.Sprint(got.Blocks)
		if err != nil || !strings.Contains(text, want) || got.Failed != (want != `{"name":"black"}`) {
			t.Errorf("%s: %+v, %v", args, got, err)
		}
	}
	if asked := strings.Join(h.asked, " "); !strings.Contains(asked, "local:ada {Text:black Size:2 Tags:[a] Key:thread/c1}") {
		t.Error(asked)
	}
	if _, err := tools[0].Run(ctx, []byte(`{"tea":"fire"}`)); err == nil {
		t.Error("a failure of ours was given to the model")
	}
	// The caller's scopes hold for agents as for everybody.
	if got, err := tools[1].Run(ctx, []byte(`{"name":"mug"}`)); err != nil || !got.Failed || !strings.Contains(fmt.Sprint(got.Blocks), "scope admin") {
		t.Errorf("%+v, %v", got, err)
	}
}

// Every tool of the catalogue is one that a set of tools takes.
func TestTheCatalogueFits(t *testing.T) {
	t.Parallel()
	tools := operate.Tools(operate.Options{Operations: operations.All()})
	if _, err := tool.NewSet(tools...); err != nil || len(tools) < 10 {
		t.Errorf("%d tools: %v", len(tools), err)
	}
}
