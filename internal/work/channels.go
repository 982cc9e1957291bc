package work

// The kinds of memos by which whoever carries out commands and whoever is connected to a chat platform agree on channels, each by the
// project's id but the last. What is wanted is written before the project changes, so that it is done after a crash as well.
const (
	MemoWantedChannel  = "project-channel-wanted"  // a ChannelWish
	MemoArchiveChannel = "project-channel-archive" // the channel
	MemoNotesThread    = "notes-thread"            // the project, by the channel or thread that takes its notes
)

// ChannelWish is a channel that is to be made for a project.
type ChannelWish struct {
	Place string `json:"place,omitempty"` // transport and place beside which it is made; "": where there is only one
	By    string `json:"by,omitempty"`    // whoever asked for it, for the platform's own log
	Board bool   `json:"board,omitempty"` // it is a board with a post for each task, where the platform has them
}
