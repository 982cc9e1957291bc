package work

import (
	"fmt"
	"slices"
	"strings"

	"chorus/internal/chat"
)

// Anyone is a list of approvers that names nobody: whoever sees the project may say yes.
const Anyone = "anyone"

// ParseApprovers reads who may say yes to what the tasks of a project gave: "owner" (of the project), "local" (whoever runs this Chorus),
// "role:NAME", or somebody's key such as "discord:123", with commas between; "anyone" alone takes a list back.
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
			return nil, fmt.Errorf("%.80q names no approver; there are owner, local, role:NAME and keys such as discord:123 or token:NAME, with commas between, and anyone alone", part)
		}
		if !slices.Contains(out, part) {
			out = append(out, part)
		}
	}
	return out, nil
}

// MayApprove reports whether somebody who sees the project may say yes to what its tasks gave.
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
