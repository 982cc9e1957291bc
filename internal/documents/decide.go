package documents

// note is what a copy in this home was last made equal to. The zero note: there never was a copy here.
type note struct {
	version int64
	digest  string
}

func (n note) known() bool { return n.version > 0 }

// copyFile is a file as it is now.
type copyFile struct {
	content
	there  bool
	text   []byte // of the document that it would be
	digest string // of that text
	gone   bool   // it is not there because somebody removed it, if it ever was
}

// action is what makes a file and its document one again.
type action string

const (
	nothing       action = ""
	remember      action = "note"              // they are equal, and that is not noted yet
	forget        action = "forget"            // both are gone
	take          action = "take"              // the file's text is the next version
	drop          action = "drop"              // a person removed the file, or what the document belongs to: it goes
	write         action = "write"             // the document's text goes into the file
	remove        action = "remove"            // the document was removed elsewhere: the file goes
	keepAndWrite  action = "keep, then write"  // both were changed: what stands in the file is kept beside it
	keepAndRemove action = "keep, then remove" // it was removed elsewhere and edited here
)

// decide is the rule. A note of a later version than there is comes from a database that was set back since: then nothing
// that stands in a file is given up.
func decide(file copyFile, was note, doc Head) action {
	setBack := was.known() && doc.Version < was.version
	unchanged := was.known() && doc.Version == was.version && (doc.Deleted || doc.Digest == was.digest)
	switch {
	case doc.There() && file.there:
		return decideBoth(file, was, doc, unchanged, setBack)
	case doc.There(): // without a file
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
		return take // a new document, or one that was removed before this file was made
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
