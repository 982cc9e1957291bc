package discordsim

import (
	"chorus/internal/sim/discordsim/guild"
)

// Invite adds a bot to the guild that was away: its connections get the guild, as when somebody with the permission authorizes it on Discord.
func (s *Sim) Invite(bot string) error {
	return s.as(bot, func(a *guild.Account) error {
		if err := s.guild.Invite(a); err != nil {
			return err
		}
		for _, n := range s.sessions {
			if n.who == a && n.intents&guild.IntentGuilds != 0 && n.mine(s.guild.ID) {
				s.tell(n, "GUILD_CREATE", s.guild.ViewFor(a, n.intents&guild.IntentMembers != 0))
			}
		}
		s.connectionsChanged()
		return nil
	})
}
