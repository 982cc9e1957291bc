package documents

// note records what a copy in this home was last made equal to. The
// zero note means that there was never a copy here.
type note struct {
	version int64
	digest  string
}

func (n note) known() bool { return n.version > 0 }

// copyFile is the current state of a file.
type copyFile struct {
	content
	there  bool
	text   []byte // the text of the document that it would be
	digest string // of that text
	gone   bool   // the file is missing because somebody removed it, if it ever existed
}

// action says how to make a file and its document equal again.
type action string

const (
	nothing       action = ""
	remember      action = "note"              // they are equal, and that is not recorded yet
	forget        action = "forget"            // both are gone
	take          action = "take"              // the file's text becomes the next version
	drop          action = "drop"              // a person removed the file, or what the document belongs to: the document is removed
	write         action = "write"             // the document's text is written into the file
	remove        action = "remove"            // the document was removed elsewhere: the file is removed
	keepAndWrite  action = "keep, then write"  // both were changed: the file's text is kept next to it
	keepAndRemove action = "keep, then remove" // it was removed elsewhere and edited here
)

// decide chooses the action. A note with a later version than the current one comes from a
// database that was reset since; in that case no text in a file is given up.
func decide(file copyFile, was note, doc Head) action {
	setBack := was.known() && doc.Version < was.version
	unchanged := was.known() && doc.Version == was.version && (doc.Deleted || doc.Digest == was.digest)
	switch {
	case doc.There() && file.there:
		return decideBoth(file, was, doc, unchanged, setBack)
	case doc.There(): // and no file
		if unchanged && file.gone {
			return drop
		}
		return write
	case !file.there:
		if was.known() {
			return forget
		}
		return nothing
	case doc.Version == 0 || !was.known() || unchanged || setBack:
		return take // a new document, or one that was removed before this file was created
	case file.digest == was.digest:
		return remove
	default:
		return keepAndRemove
	}
}

func decideBoth(file copyFile, was note, doc Head, unchanged, setBack bool) action {
	switch {
	case file.digest == doc.Digest:
		if was == (note{doc.Version, doc.Digest}) {
			return nothing
		}
		return remember
	case unchanged:
		return take
	case was.known() && file.digest == was.digest && !setBack:
		return write
	default:
		return keepAndWrite
	}
}
