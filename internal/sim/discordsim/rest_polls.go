package discordsim

import (
	"chorus/internal/sim/discordsim/guild"
)

func (s *Sim) routesPolls() {
	s.route("POST /channels/{channel}/polls/{message}/expire", withAccount, func(c *call) (any, error) {
		in, m, err := c.at(0)
		if err != nil {
			return nil, err
		}
		return c.show(m, c.guild.EndPoll(c.who, in, m))
	})
	s.route("GET /channels/{channel}/polls/{message}/answers/{answer}", withAccount, func(c *call) (any, error) {
		_, m, err := c.at(guild.PermReadHistory)
		if err != nil {
			return nil, err
		}
		return object{"users": c.guild.Voters(m, int(c.id("answer")))}, nil
	})
}
