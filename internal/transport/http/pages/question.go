package pages

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// questionForm is the form for answering a question.
type questionForm struct {
	ID     string // of the approval
	Back   string // "approvals": the next page; "": the conversation
	Fields []questionField
}

// questionField is one value that it asks for.
type questionField struct {
	chat.Field
	ID      string // of the element
	Text    string // its typed text
	Options []questionOption
	About   string // the hint
	Wrong   string // why the given value does not fit
	First   bool   // the first field that does not fit
	Mode    string // the keyboard that a phone shows
	Type    string // of the input
	Longest int    // maximum number of characters
}

// questionOption is one of the possible values.
type questionOption struct {
	chat.Choice
	Chosen bool
}

// longestAnswer is the maximum number of characters of one value.
const longestAnswer = 2000

// fieldName is the prefix of the names of a question's fields in its form.
const fieldName = "field:"

// questionOf returns the form of a question. wrong maps fields to what is wrong with their values.
func questionOf(id, back string, fields []chat.Field, wrong map[string]string) questionForm {
	f := questionForm{ID: id, Back: back}
	first := true
	for i, field := range fields {
		one := questionField{Field: field, ID: fmt.Sprintf("field-%s-%d", id, i), About: approval.Hint(field), Wrong: wrong[field.Name]}
		one.Text = strings.Join(field.Values, ", ")
		for _, c := range field.Choices {
			one.Options = append(one.Options, questionOption{c, slices.Contains(field.Values, c.Value)})
		}
		one.Mode = map[string]string{"integer": "numeric", "number": "decimal"}[field.Kind]
		one.Type = cmp.Or(map[string]string{"email": "email", "uri": "url", "date": "date"}[field.Format], "text")
		one.Longest = longestAnswer
		if field.Kind == "" && field.MaxLength > 0 {
			one.Longest = min(field.MaxLength, longestAnswer)
		}
		if one.Wrong != "" && first {
			one.First, first = true, false
		}
		f.Fields = append(f.Fields, one)
	}
	return f
}

// filled returns the submitted values of a question's form by field; nil: it is not such a form.
func filled(r *http.Request) map[string][]string {
	var out map[string][]string
	for name, values := range r.PostForm {
		if field, ok := strings.CutPrefix(name, fieldName); ok {
			if out == nil {
				out = map[string][]string{}
			}
			out[field] = values
		}
	}
	return out
}

// askAgain shows the form of a question again, with the given values and what is wrong with them. false: the error is about something else.
func (p *Pages) askAgain(w http.ResponseWriter, r *http.Request, by operation.Caller, given map[string][]string, failed error) (bool, error) {
	var misfit *approval.Misfit
	if len(given) == 0 || !errors.As(failed, &misfit) {
		return false, nil
	}
	a, err := operations.GetApproval.Call(r.Context(), p.Executor, by, operations.ApprovalRef{ID: r.PathValue("id")})
	if err != nil {
		return true, err
	}
	wrong := approval.Misfits(a.Fields, approval.AnswerText(given))
	for i, f := range a.Fields {
		a.Fields[i].Values = given[f.Name]
	}
	if !fromScript(r) {
		return true, p.render(w, http.StatusUnprocessableEntity, "approvals.html", map[string]any{"Layout": p.layout(r, by, "Approvals"), "List": operation.List[operations.Approval]{Items: []operations.Approval{a}},
			"State": "pending", "Names": p.names(r.Context(), by), "Answer": true, "Wrong": wrong})
	}
	form, err := p.fragment("question", questionOf(a.ID, r.PostFormValue("back"), a.Fields, wrong))
	if err != nil {
		return true, err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusUnprocessableEntity)
	_, err = w.Write([]byte(form))
	return true, err
}
