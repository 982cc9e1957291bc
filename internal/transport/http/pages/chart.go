package pages

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
	"time"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"chorus/internal/operations"
)

// The size of a chart, in units of its view box.
const (
	chartWidth, chartHeight = 920, 190
	halfChart               = 460 // of a chart that shares its row
	phoneChart              = 350 // of one on a phone, as wide as it is shown: its words can be read
	chartLeft, chartBottom  = 56, 22
)

// dayChart draws the costs of each day as bars; where nothing was spent, as by free models, what they read and wrote.
func dayChart(c operations.Costs, width int, now time.Time) template.HTML {
	spent, tokens := map[string]float64{}, map[string]float64{}
	for _, row := range c.Rows {
		spent[row.Key] = row.Dollars
		tokens[row.Key] = float64(row.InputTokens + row.OutputTokens + row.CacheReadTokens + row.CacheWriteTokens)
	}
	if free(c) {
		return barChart("Tokens by day", width, tokens, c.Since, now, func(n float64) string { return count(int(n)) })
	}
	return barChart("Spending by day", width, spent, c.Since, now, dollars)
}

// free reports whether models were used and nothing was spent.
func free(c operations.Costs) bool {
	return len(c.Rows) > 0 && !slices.ContainsFunc(c.Rows, func(row operations.Cost) bool { return row.Dollars > 0 })
}

// forecastDays is how many of the last days say what the rest of a month will cost.
const forecastDays = 7

// forecast is what a month will have cost at its end, if it goes on like the last week. Days are those of UTC, and today counts
// for what of it is over.
func forecast(month operations.Costs, now time.Time) float64 {
	now = now.UTC()
	begin := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	end := begin.AddDate(0, 1, 0)
	from := now.AddDate(0, 0, -forecastDays).Truncate(24 * time.Hour)
	if from.Before(begin) {
		from = begin
	}
	spent := 0.0
	for _, row := range month.Rows {
		if row.Key >= from.Format(time.DateOnly) {
			spent += row.Dollars
		}
	}
	passed := max(now.Sub(from).Hours(), 1)
	return month.Total + spent/passed*end.Sub(now).Hours()
}

// maxDays is how many days a chart shows: more bars would be too thin.
const maxDays = 120

// labelRoom is how much room the name of a day takes.
const labelRoom = 46.0

// labelled says that every so manieth day has its name below it: all of a few, one a week of many, and never two over each other.
func labelled(days int, room float64) int {
	each := max(int(math.Ceil(labelRoom/room)), 1)
	if days > 14 {
		each = (each + 6) / 7 * 7
	}
	return each
}

// barChart draws a value of each day as a bar, by days in UTC such as 2026-11-17; "": there is nothing to draw.
func barChart(title string, width int, values map[string]float64, since, now time.Time, show func(float64) string) template.HTML {
	first := since.UTC().Truncate(24 * time.Hour)
	days := min(max(int(now.UTC().Sub(first)/(24*time.Hour))+1, 1), maxDays)
	first = now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-days)
	most := 0.0
	for i := range days {
		most = max(most, values[first.AddDate(0, 0, i).Format(time.DateOnly)])
	}
	if most == 0 {
		return ""
	}
	room := float64(width-chartLeft) / float64(days)
	tall := float64(chartHeight - chartBottom - 14)
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="chart" viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, chartHeight, html.EscapeString(title))
	for i := range 3 {
		y := 14 + tall*float64(i)/2
		fmt.Fprintf(&out, `<line class="axis" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`,
			chartLeft, width, y, y, chartLeft-8, y+4, html.EscapeString(show(most*float64(2-i)/2)))
	}
	each := labelled(days, room)
	for i := range days {
		day := first.AddDate(0, 0, i)
		key := day.Format(time.DateOnly)
		x, h := float64(chartLeft)+room*float64(i), tall*values[key]/most
		if h > 0 {
			fmt.Fprintf(&out, `<rect class="spent" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2"><title>%s: %s</title></rect>`,
				x+room*.12, 14+tall-h, min(room*.76, 60), max(h, 1), key, html.EscapeString(show(values[key])))
		}
		switch at := x + min(room/2, 36); {
		case (days-1-i)%each != 0:
		case at+labelRoom/2 > float64(width): // it would stand out of the picture
			fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="end">%s</text>`, width, chartHeight-6, day.Format("2 Jan"))
		default:
			fmt.Fprintf(&out, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, at, chartHeight-6, day.Format("2 Jan"))
		}
	}
	out.WriteString("</svg>")
	return template.HTML(out.String())
}
