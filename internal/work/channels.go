package work

// The kinds of memos with which the process that carries out commands and the one connected to a
// chat platform coordinate channels. All but the last have the project's id as key. A wish is
// written before the project changes, so that it is carried out after a crash too.
const (
	MemoWantedChannel  = "project-channel-wanted"  // a ChannelWish
	MemoArchiveChannel = "project-channel-archive" // the channel
	MemoNotesThread    = "notes-thread"            // the project, by the channel or thread that takes its notes
)

// ChannelWish is a channel to be created for a project.
type ChannelWish struct {
	Place string `json:"place,omitempty"` // transport and place next to which it is created; "": where there is only one
	By    string `json:"by,omitempty"`    // who asked for it, for the platform's own log
	Board bool   `json:"board,omitempty"` // a board with a post for each task, if the platform has boards
}
