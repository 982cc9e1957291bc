package bedrock

// takes says which parts of a message a model accepts.
type takes struct {
	images   bool
	failures bool // a tool result has a status
	thinking bool // signed reasoning is accepted back
}

// form names the encoding, one for each combination.
func (t takes) form() string {
	name := []byte("converse/---")
	for i, on := range []bool{t.images, t.failures, t.thinking} {
		if on {
			name[len("converse/")+i] = "ift"[i]
		}
	}
	return string(name)
}
