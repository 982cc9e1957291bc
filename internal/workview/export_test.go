package workview

import "chorus/internal/work"

// HasLook reports whether a state has a sign and a tone.
func HasLook(s work.State) bool { return looks[s].sign != "" && looks[s].tone != "" }
