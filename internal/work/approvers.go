package work

import (
	"fmt"
	"slices"
	"strings"

	"chorus/internal/chat"
)

// Anyone is a list of approvers that names nobody: everybody who sees the project may approve.
const Anyone = "anyone"

// ParseApprovers reads who may approve the results of a project's tasks: "owner" (of the
// project), "local" (whoever runs this Chorus), "role:NAME", or a principal's key such as
// "discord:123", separated by commas. "anyone" alone removes the restriction.
func ParseApprovers(text string) ([]string, error) {
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		kind, id, keyed := strings.Cut(part, ":")
		switch {
		case part == Anyone && strings.TrimSpace(text) == Anyone:
			return nil, nil
		case part == "owner", part == "local":
		case keyed && id != "" && (kind == "role" || chat.PrincipalKind(kind) == chat.LocalUser || chat.PrincipalKind(kind) == chat.TokenHolder || chat.PrincipalKind(kind).OnPlatform()):
		default:
			return nil, fmt.Errorf("%.80q is not a valid approver; use owner, local, role:NAME and keys such as discord:123 or token:NAME, separated by commas, or anyone alone", part)
		}
		if !slices.Contains(out, part) {
			out = append(out, part)
		}
	}
	return out, nil
}

// MayApprove reports whether somebody who sees the project may approve the results of its tasks.
func (p Project) MayApprove(who chat.Principal) bool {
	if len(p.Approvers) == 0 {
		return true
	}
	for _, a := range p.Approvers {
		role, isRole := strings.CutPrefix(a, "role:")
		switch {
		case a == "owner" && who.String() == p.Owner.String(), a == "local" && who.Owns(), isRole && slices.Contains(who.Roles, role), a == who.String():
			return true
		}
	}
	return false
}
