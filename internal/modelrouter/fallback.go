package modelrouter

import "chorus/internal/model"

// policy lists the failures that another model may avoid. A fallback comes after the
// attempts that the back-off allows, never instead of them.
var policy = map[model.ErrorKind]bool{
	model.Overloaded:  true,  // another provider may have capacity
	model.Network:     true,  // or be reachable
	model.RateLimited: true,  // once the wait is longer than a run waits
	model.Auth:        true,  // or have a key that works
	model.TooLong:     false, // a compaction helps; a smaller window elsewhere would not
	model.Refused:     false, // people do not want us to ask around until some model agrees
	model.BadRequest:  false, // our mistake, which would be hidden
}

// Next reports whether a failure of this kind moves a run on to the next model of its
// fallback list. That is only allowed while nothing of the answer was shown.
func Next(kind model.ErrorKind) bool { return policy[kind] }
