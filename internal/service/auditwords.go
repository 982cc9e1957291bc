package service

import (
	"regexp"
	"strings"
	"sync"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/gate"
	"chorus/internal/operations"
	"chorus/internal/permit"
)

// denials are the details of refused calls, in words.
var denials = map[string]string{
	permit.ListDeny: "a rule denies it", permit.ListImplicit: "no rule allows it", permit.ListCatastrophic: "refused under every profile",
	"self-edit": "nobody may give the agent more than they have", "rights": "the rights of who asked could not be read",
}

// keyInWords matches keys in details: "by KEY and KEY", "refused by KEY: why", "deleted by KEY at …", "ID for KEY in …".
var keyInWords = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^((?:refused |deleted )?by|\S+ for) ([a-z]+:[^\s,;]*[^\s,;:](?: and [a-z]+:[^\s,;]*[^\s,;:])*)`)
})

// auditWords returns the detail of a line in words. Details with values that somebody has set are unchanged.
func auditWords(l operations.AuditLine, name func(chat.Principal) string) string {
	if words, ok := denials[l.Detail]; ok && l.Decision == "deny" {
		return words
	}
	if l.Decision == gate.Changed && !strings.HasPrefix(l.Action, "session erase ") && !strings.HasPrefix(l.Action, "permit allowed ") {
		return l.Detail
	}
	if l.Detail == "--yes" {
		return "--yes was given beforehand"
	}
	at := keyInWords().FindStringSubmatchIndex(l.Detail)
	if at == nil {
		return l.Detail
	}
	people := strings.Split(l.Detail[at[4]:at[5]], approval.And)
	for i, key := range people {
		people[i] = name(chat.PrincipalOf(key))
	}
	return l.Detail[:at[4]] + strings.Join(people, approval.And) + l.Detail[at[5]:]
}
