package discordsim

import "fmt"

// Invite brings a bot into the guild that was away: its connections hear of the guild, as when somebody with the right to
// authorizes it on Discord.
func (s *Sim) Invite(bot string) error {
	return s.as(bot, func(a *account) error {
		if a.invited == nil {
			return fmt.Errorf("%s is in the guild already", bot)
		}
		a.member, a.invited = a.invited, nil
		a.member.JoinedAt = s.w.now()
		for _, n := range s.sessions {
			if n.who == a && n.intents&intentGuilds != 0 && n.mine(&Channel{GuildID: s.w.guild}) {
				s.tell(n, "GUILD_CREATE", s.w.guildCreate(a, n.intents&intentMembers != 0))
			}
		}
		s.stir()
		return nil
	})
}

// systemChannel is where Discord greets newcomers; nil: nowhere.
func (w *world) systemChannel() any {
	if c := w.channelNamed(w.system); c != nil && w.system != "" {
		return c.ID
	}
	return nil
}
