package repl

import "testing"

// TestChooseByTitle: a session is found by a part of its title, as in the list that is offered.
func TestChooseByTitle(t *testing.T) {
	t.Parallel()
	list := []Listed{{ID: "01aa", Title: "Fix the  test"}, {ID: "01ab", Title: "explain the test"}, {ID: "02aa", Title: "a picture"}}
	for typed, want := range map[string]string{"02": "02aa", "fix the": "01aa", "PICTURE": "02aa", "01a": "", "the test": "", "nothing": ""} {
		got, err := Choose(list, typed)
		if got.ID != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", typed, got.ID, err)
		}
	}
}
