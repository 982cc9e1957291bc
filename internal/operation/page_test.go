package operation_test

import (
	"context"
	"fmt"
	"testing"

	"chorus/internal/operation"
)

type lister interface {
	List(context.Context, operation.Caller, listQuery) (operation.List[thing], error)
}

type listQuery struct {
	Cursor string `json:"cursor,omitempty" maxLen:"9" doc:"next of the page before"`
	Limit  int    `json:"limit,omitempty" min:"1" max:"3" default:"2"`
}

var listThings = operation.New(operation.Info{Name: "page.list", Help: "List a page", Scope: operation.Read}, lister.List)

// pagedList holds things that are called t00, t01 …
type pagedList struct {
	things []thing
	asked  int
}

func (s *pagedList) List(_ context.Context, _ operation.Caller, in listQuery) (operation.List[thing], error) {
	s.asked++
	return operation.PageByKey(s.things, func(t thing) string { return t.Name }, in.Cursor, max(in.Limit, 1)), nil
}

func newPagedList(n int) (*pagedList, *operation.Local) {
	s := &pagedList{}
	for i := range n {
		s.things = append(s.things, thing{Name: fmt.Sprintf("t%02d", i)})
	}
	return s, operation.NewLocal(operation.LocalOptions{Handlers: []any{s}, Operations: operation.Collect([]operation.Any{listThings, operation.Names})})
}

func TestWholeListsAreReadInPages(t *testing.T) {
	t.Parallel()
	s, l := newPagedList(7)
	got, err := operation.CallWhole(t.Context(), listThings, l, caller(operation.Read), listQuery{})
	if err != nil || len(got) != 7 || got[6].Name != "t06" || s.asked != 3 {
		t.Errorf("%v after %d pages, %v", got, s.asked, err)
	}
	if got, err := operation.CallWhole(t.Context(), listThings, l, caller(operation.Read), listQuery{Limit: 4, Cursor: "t01"}); err != nil || len(got) != 4 || got[0].Name != "t02" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := operation.CallWhole(t.Context(), listThings, l, caller(), listQuery{}); operation.KindOf(err) != operation.Forbidden {
		t.Errorf("without the scope: %v", err)
	}
}

// A name that stands far down a list is completed all the same.
func TestNamesOfLaterPagesAreSuggested(t *testing.T) {
	t.Parallel()
	_, l := newPagedList(58)
	if got, err := operation.Complete(t.Context(), l, caller(operation.Read), "page", "t57"); err != nil || got != "t57" {
		t.Errorf("%s, %v", got, err)
	}
	list, err := operation.Names.Call(t.Context(), l, caller(operation.Read), operation.Prefix{Noun: "page", Prefix: "T5"})
	if err != nil || len(list.Items) != 8 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestAPageGoesOnWhereTheLastOneEnded(t *testing.T) {
	t.Parallel()
	name := func(s string) string { return s }
	if page := operation.PageByKey([]string{"d", "b", "a"}, name, "c", 5); len(page.Items) != 1 || page.Items[0] != "d" || page.Next != "" {
		t.Errorf("behind what is gone: %+v", page)
	}
	if page := operation.PageByKey([]string{"a", "b"}, name, "b", 5); page.Items == nil || len(page.Items) != 0 || page.Next != "" {
		t.Errorf("behind the last: %+v", page)
	}
	page, err := operation.PageBehind([]string{"z", "a", "m"}, name, "", 2)
	if err != nil || len(page.Items) != 2 || page.Next != "a" {
		t.Errorf("%+v, %v", page, err)
	}
	if page, err = operation.PageBehind([]string{"z", "a", "m"}, name, page.Next, 2); err != nil || len(page.Items) != 1 || page.Items[0] != "m" || page.Next != "" {
		t.Errorf("%+v, %v", page, err)
	}
	if _, err := operation.PageBehind([]string{"z"}, name, "gone", 2); operation.KindOf(err) != operation.Invalid {
		t.Errorf("behind what is gone: %v", err)
	}
}
