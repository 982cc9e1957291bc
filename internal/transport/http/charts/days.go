package charts

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
	"time"

	"chorus/internal/operations"
	"chorus/internal/text"
	"chorus/internal/transport/http/display"
)

// Widths of charts, in units of the view box.
const (
	Full  = 920
	Half  = 460 // of a chart that shares its row
	Phone = 350 // of a chart on a phone, drawn at its real size so that its text is readable
)

// Height of a chart, and the space for its numbers and days.
const dayHeight, dayLeft, dayBottom = 190, 56, 22

// Costs draws the costs of each day as bars, or the tokens if nothing was spent, as with free models.
func Costs(c operations.Costs, width int, now time.Time) string {
	spent, tokens := map[string]float64{}, map[string]float64{}
	for _, row := range c.Rows {
		spent[row.Key] = row.Dollars
		tokens[row.Key] = float64(row.InputTokens + row.OutputTokens + row.CacheReadTokens + row.CacheWriteTokens)
	}
	if Free(c) {
		return Tokens(width, tokens, c.Since, now)
	}
	return Dollars("Spending by day", width, spent, c.Since, now)
}

// Free reports whether models were used and nothing was spent.
func Free(c operations.Costs) bool {
	return len(c.Rows) > 0 && !slices.ContainsFunc(c.Rows, func(row operations.Cost) bool { return row.Dollars > 0 })
}

// forecastDays is the number of recent days that the forecast is based on.
const forecastDays = 7

// Forecast estimates the costs of the whole month at the rate of the last week. Days are in UTC, and today counts in
// proportion to the time that has passed.
func Forecast(month operations.Costs, now time.Time) float64 {
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

// maxDays is the maximum number of days in a chart: more bars would be too thin.
const maxDays = 120

// labelRoom is the space for the name of a day.
const labelRoom = 46.0

// labelled says how many days share a label: with few days each has one, with many one per week, and labels never overlap.
func labelled(days int, room float64) int {
	each := max(int(math.Ceil(labelRoom/room)), 1)
	if days > 14 {
		each = (each + 6) / 7 * 7
	}
	return each
}

// Tokens draws the tokens of each day, by days in UTC such as 2026-11-17; "": there is nothing to draw.
func Tokens(width int, values map[string]float64, since, now time.Time) string {
	return bars("Tokens by day", width, values, since, now, func(n float64) string { return display.Count(int(n)) })
}

// Dollars draws the costs of each day, like Tokens.
func Dollars(title string, width int, values map[string]float64, since, now time.Time) string {
	return bars(title, width, values, since, now, text.Dollars)
}

// bars draws a value per day as a bar, by days in UTC such as 2026-11-17; "": there is nothing to draw.
func bars(title string, width int, values map[string]float64, since, now time.Time, show func(float64) string) string {
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
	room := float64(width-dayLeft) / float64(days)
	tall := float64(dayHeight - dayBottom - 14)
	var out strings.Builder
	fmt.Fprintf(&out, `<svg class="chart" viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, dayHeight, html.EscapeString(title))
	for i := range 3 {
		y := 14 + tall*float64(i)/2
		fmt.Fprintf(&out, `<line class="axis" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`,
			dayLeft, width, y, y, dayLeft-8, y+4, html.EscapeString(show(most*float64(2-i)/2)))
	}
	each := labelled(days, room)
	for i := range days {
		day := first.AddDate(0, 0, i)
		key := day.Format(time.DateOnly)
		x, h := float64(dayLeft)+room*float64(i), tall*values[key]/most
		if h > 0 {
			fmt.Fprintf(&out, `<rect class="spent" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2"><title>%s: %s</title></rect>`,
				x+room*.12, 14+tall-h, min(room*.76, 60), max(h, 1), key, html.EscapeString(show(values[key])))
		}
		switch at := x + min(room/2, 36); {
		case (days-1-i)%each != 0:
		case at+labelRoom/2 > float64(width): // it would not fit into the chart
			fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="end">%s</text>`, width, dayHeight-6, day.Format("2 Jan"))
		default:
			fmt.Fprintf(&out, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, at, dayHeight-6, day.Format("2 Jan"))
		}
	}
	out.WriteString("</svg>")
	return out.String()
}
