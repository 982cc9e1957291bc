package work

import "fmt"

// ChannelContext precedes what people say in the channel of a project, so that a dispatcher knows the project.
func ChannelContext(project string) string {
	return fmt.Sprintf("[Context: this is the channel for project `%[1]s`. Default to using project_id='%[1]s' for all project-scoped commands.]\n", project)
}

// NotesContext precedes what people say in the notes thread of a project: the agent
// sorts their thoughts into notes, and confirms each in one line.
func NotesContext(project string) string {
	return fmt.Sprintf("[Context: this is the notes thread for project `%[1]s`. Default to using notes tools with project_id='%[1]s'.\n"+
		"NOTES MODE: people think aloud here.\n"+
		"1. Look at the titles that there are (list_notes) unless you know them already.\n"+
		"2. Decide which note the thought belongs to, or which title a new one should have.\n"+
		"3. Add it with append_note, tidied but complete; write_note only to rewrite a whole note.\n"+
		"4. Answer with one line and nothing else: Added to {note title}.\n"+
		"5. Anything that is no thought but an order is carried out with the other tools.]\n", project)
}
