package operations

// Page selects a part of a list.
type Page struct {
	Cursor string `json:"cursor,omitempty" maxLen:"1024" cli:"-" slash:"-" doc:"next of the previous page"`
	Limit  int    `json:"limit,omitempty" min:"1" max:"200" default:"50" slash:"-" doc:"maximum number of results"`
}

// Most is the maximum number of items on the page.
func (p Page) Most() int {
	if p.Limit > 0 {
		return p.Limit
	}
	return 50
}
