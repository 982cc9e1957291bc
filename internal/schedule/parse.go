package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Parse reads when something is due: an instant, cron fields, or plain words. A time without a
// zone is in the given zone, and words such as "tomorrow" are relative to now. Unless it is due
// at once, something that is never due after now is an error.
func Parse(text string, zone *time.Location, now time.Time) (Spec, error) {
	text = strings.TrimSpace(text)
	now = now.In(zone)
	if slices.Contains(atOnce, strings.ToLower(text)) {
		return Once(now.Truncate(time.Second)), nil
	}
	spec, err := parse(text, zone, now)
	if err != nil {
		return Spec{}, err
	}
	if spec.Next(now).IsZero() {
		if !spec.Repeats() {
			return Spec{}, fmt.Errorf("%q is in the past: it is %s now", text, now.Format("2006-01-02 15:04 MST"))
		}
		return Spec{}, fmt.Errorf("%q never comes: there is no such day in the calendar", text)
	}
	return spec, nil
}

// atOnce are the words for something that is due now.
var atOnce = []string{"immediate", "immediately", "now", "at once"}

// Zone returns the time zone for a name such as Europe/Berlin; "" is that of this machine.
func Zone(name string) (*time.Location, error) {
	if name == "" {
		return time.Local, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("there is no time zone %q: use one such as Europe/Berlin, America/New_York or UTC", name)
	}
	return zone, nil
}

// instants are the formats of instants, with and without a zone.
var instants = []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"}

func parse(text string, zone *time.Location, now time.Time) (Spec, error) {
	if spec, err := Read(text, zone); err == nil || isCron(text) {
		return spec, err
	}
	w := words{left: tokens(text), text: text}
	return w.spec(zone, now)
}

// isCron reports whether a text is meant as cron: it has a star, or five fields with only cron's characters.
func isCron(text string) bool {
	if strings.ContainsAny(text, "*@") || strings.Contains(text, "TZ=") {
		return true
	}
	fields := strings.Fields(text)
	return len(fields) == 5 && strings.Trim(fields[0]+fields[1], "0123456789,-/") == ""
}

// words reads plain words from left to right.
type words struct {
	text string
	left []string
}

// tokens returns the words of a text in lower case, without commas and filler words.
func tokens(text string) []string {
	all := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r == ' ' || r == ',' || r == '\t' || r == '\n' })
	return slices.DeleteFunc(all, func(w string) bool { return w == "the" || w == "and" || w == "please" || w == "o'clock" })
}

func (w *words) confused() error {
	if len(w.left) > 0 {
		return fmt.Errorf("%q is not understood from %q on; %s", w.text, w.left[0], forms)
	}
	return fmt.Errorf("%q is not understood; %s", w.text, forms)
}

const forms = `say for instance "every weekday at 9", "every 20 minutes", "tomorrow at 17:30", "on the 1st of every month at 8", "2026-12-24 18:00" or cron fields such as "0 9 * * 1-5"`

// next takes the first word if it is one of the given ones.
func (w *words) next(any ...string) bool {
	if len(w.left) > 0 && slices.Contains(any, w.left[0]) {
		w.left = w.left[1:]
		return true
	}
	return false
}

// steps reads what Spec.String writes for equal steps.
func (w *words) steps(zone *time.Location) (Spec, bool) {
	if len(w.left) != 4 || w.left[0] != "every" || w.left[2] != "from" {
		return Spec{}, false
	}
	step, err := time.ParseDuration(w.left[1])
	if err != nil {
		return Spec{}, false
	}
	from, err := time.Parse(time.RFC3339, strings.ToUpper(w.left[3]))
	if err != nil {
		return Spec{}, false
	}
	spec, err := Every(step, from.In(zone))
	return spec, err == nil
}

func (w *words) spec(zone *time.Location, now time.Time) (Spec, error) {
	if len(w.left) == 0 {
		return Spec{}, w.confused()
	}
	every := w.next("every", "each")
	switch {
	case w.next("in"):
		step, ok := w.duration()
		if !ok || len(w.left) > 0 {
			return Spec{}, w.confused()
		}
		return Once(now.Add(step)), nil
	case w.next("hourly"):
		return w.cron(zone, "0 * * * *")
	case w.next("daily"), every && w.next("day"):
		return w.daily("* * *", zone)
	case w.next("weekdays", "weekday"):
		return w.daily("* * 1-5", zone)
	case w.next("weekends", "weekend"):
		return w.daily("* * 0,6", zone)
	case w.next("weekly"):
		w.next("on")
		return w.weekly(zone, "1")
	case w.next("monthly"):
		w.next("on")
		return w.monthly(zone, 1)
	case every && w.next("minute"):
		return w.cron(zone, "* * * * *")
	case every && w.next("hour"):
		return w.cron(zone, "0 * * * *")
	case every && w.next("week"):
		w.next("on")
		return w.weekly(zone, "1")
	case every && w.next("month"):
		w.next("on")
		return w.monthly(zone, 1)
	case every:
		return w.every(zone, now)
	default:
		return w.once(zone, now)
	}
}

// every reads what follows "every", if that is neither a day nor another single unit.
func (w *words) every(zone *time.Location, now time.Time) (Spec, error) {
	before := w.left
	if step, ok := w.duration(); ok {
		if len(w.left) > 0 {
			return Spec{}, w.confused()
		}
		return w.equalSteps(step, zone, now)
	}
	w.left = before
	if day, ok := w.ordinal(); ok {
		if w.next("of") {
			if w.next("every", "each"); !w.next("month") {
				return Spec{}, w.confused()
			}
		}
		return w.monthly(zone, day)
	}
	return w.weekly(zone, "")
}

// equalSteps handles minutes and hours. Steps that divide an hour or a day follow the clock, as people expect.
func (w *words) equalSteps(step time.Duration, zone *time.Location, now time.Time) (Spec, error) {
	minutes := int(step / time.Minute)
	switch {
	case minutes == 1:
		return Cron("* * * * *", zone)
	case minutes > 0 && minutes < 60 && 60%minutes == 0:
		return Cron(fmt.Sprintf("*/%d * * * *", minutes), zone)
	case minutes == 60:
		return Cron("0 * * * *", zone)
	case minutes > 60 && minutes < 24*60 && (24*60)%minutes == 0 && minutes%60 == 0:
		return Cron(fmt.Sprintf("0 */%d * * *", minutes/60), zone)
	}
	return Every(step, now.Truncate(time.Minute).Add(step))
}

// cron handles words that need nothing after them.
func (w *words) cron(zone *time.Location, fields string) (Spec, error) {
	if len(w.left) > 0 {
		return Spec{}, w.confused()
	}
	return Cron(fields, zone)
}

// daily reads the time of day for known days.
func (w *words) daily(days string, zone *time.Location) (Spec, error) {
	hour, minute, err := w.timeOfDay()
	if err != nil {
		return Spec{}, err
	}
	return Cron(fmt.Sprintf("%d %d %s", minute, hour, days), zone)
}

// weekly reads days of the week and a time of day.
func (w *words) weekly(zone *time.Location, unless string) (Spec, error) {
	var days []string
	for len(w.left) > 0 {
		if w.next("weekday", "weekdays") {
			days = append(days, "1-5")
		} else if w.next("weekend", "weekends") {
			days = append(days, "0", "6")
		} else if day, ok := weekday(w.left[0]); ok {
			w.left, days = w.left[1:], append(days, strconv.Itoa(int(day)))
		} else {
			break
		}
	}
	if len(days) == 0 {
		if unless == "" {
			return Spec{}, w.confused()
		}
		days = []string{unless}
	}
	slices.Sort(days)
	return w.daily("* * "+strings.Join(slices.Compact(days), ","), zone)
}

// monthly reads days of the month and a time of day.
func (w *words) monthly(zone *time.Location, first int) (Spec, error) {
	if day, ok := w.ordinal(); ok {
		first = day
	}
	return w.daily(fmt.Sprintf("%d * *", first), zone)
}

// once reads a day and a time of day, one of which may be missing.
func (w *words) once(zone *time.Location, now time.Time) (Spec, error) {
	y, m, d := now.Date()
	fixed := true
	switch before := w.left; {
	case w.next("tomorrow"):
		d++
	case w.next("today", "tonight"):
	case w.next("on", "next", "this"):
		w.next("next", "this")
		if day, ok := w.ordinal(); ok {
			if w.next("of") {
				if w.next("every", "each"); !w.next("month") {
					return Spec{}, w.confused()
				}
			}
			return w.monthly(zone, day)
		}
		if !w.dayOfWeek(&d, now) {
			return Spec{}, w.confused()
		}
	case w.dayOfWeek(&d, now):
		if strings.HasSuffix(before[0], "days") { // "mondays at 9" means every Monday
			w.left = before
			return w.weekly(zone, "")
		}
	default:
		fixed = false
	}
	hour, minute, err := w.timeOfDay()
	if err != nil {
		return Spec{}, err
	}
	at := instant(y, m, d, hour, minute, zone)
	if !fixed && !at.After(now) { // "at 9", said in the evening, means tomorrow
		at = instant(y, m, d+1, hour, minute, zone)
	}
	return Once(at), nil
}

// dayOfWeek reads a day of the week and moves d to the next such day, not today.
func (w *words) dayOfWeek(d *int, now time.Time) bool {
	if len(w.left) == 0 {
		return false
	}
	day, ok := weekday(w.left[0])
	if !ok {
		return false
	}
	w.left = w.left[1:]
	ahead := cmp.Or((int(day)-int(now.Weekday())+7)%7, 7)
	*d += ahead
	return true
}

func weekday(word string) (time.Weekday, bool) {
	word = strings.TrimSuffix(word, "s")
	for day := time.Sunday; day <= time.Saturday; day++ {
		name := strings.ToLower(day.String())
		if word == name || len(word) >= 3 && len(word) <= 5 && strings.HasPrefix(name, word) {
			return day, true
		}
	}
	return 0, false
}

// ordinal reads a day of the month: 1st, 15., or a bare number after "day".
func (w *words) ordinal() (int, bool) {
	if len(w.left) == 0 {
		return 0, false
	}
	word := w.left[0]
	if word == "first" {
		word = "1st"
	}
	for _, end := range []string{"st", "nd", "rd", "th", "."} {
		if number, ok := strings.CutSuffix(word, end); ok {
			if n, err := strconv.Atoi(number); err == nil && n >= 1 && n <= 31 {
				w.left = w.left[1:]
				return n, true
			}
		}
	}
	return 0, false
}

// duration reads a number and a unit: "20 minutes", "2h", "half an hour".
func (w *words) duration() (time.Duration, bool) {
	if len(w.left) == 0 {
		return 0, false
	}
	if step, err := time.ParseDuration(w.left[0]); err == nil && step > 0 {
		w.left = w.left[1:]
		return step, true
	}
	number := 0.0
	switch {
	case w.next("a", "an", "one"):
		number = 1
	case w.next("half"):
		w.next("a", "an")
		number = 0.5
	case w.next("other"):
		number = 2
	default:
		n, err := strconv.ParseFloat(w.left[0], 64)
		if err != nil || !(n > 0) || n > 1e6 {
			return 0, false
		}
		w.left, number = w.left[1:], n
	}
	for unit, names := range map[time.Duration][]string{time.Minute: {"minute", "minutes", "min", "mins"}, time.Hour: {"hour", "hours", "h"},
		24 * time.Hour: {"day", "days"}, 7 * 24 * time.Hour: {"week", "weeks"}} {
		if w.next(names...) {
			return time.Duration(number * float64(unit)), true
		}
	}
	return 0, false
}

// timeOfDay reads the rest: "at 9", "at 17:30", "9am", "noon". No words mean nine in the morning.
func (w *words) timeOfDay() (hour, minute int, err error) {
	w.next("at")
	if len(w.left) == 0 {
		return 9, 0, nil
	}
	word := strings.Join(w.left, "")
	switch word {
	case "noon", "midday":
		return 12, 0, nil
	case "midnight":
		return 0, 0, nil
	case "morning", "inmorning":
		return 9, 0, nil
	case "evening", "inevening":
		return 18, 0, nil
	}
	half, number := "", word
	for _, end := range []string{"am", "pm", "a.m.", "p.m.", "h", "uhr"} {
		if cut, ok := strings.CutSuffix(word, end); ok {
			number, half = cut, strings.ReplaceAll(end, ".", "")
			break
		}
	}
	hours, minutes, colon := strings.Cut(number, ":")
	hour, err = strconv.Atoi(hours)
	if err == nil && colon {
		minute, err = strconv.Atoi(minutes)
	}
	switch {
	case err != nil, hour < 0, minute < 0, minute > 59, colon && len(minutes) != 2:
		return 0, 0, w.confused()
	case half == "am" || half == "pm":
		if hour < 1 || hour > 12 {
			return 0, 0, w.confused()
		}
		if hour %= 12; half == "pm" {
			hour += 12
		}
	}
	if hour > 23 {
		return 0, 0, w.confused()
	}
	return hour, minute, nil
}

// Read reads an instant, cron fields or what Spec.String wrote. It may be
// in the past. Relative words are not understood.
func Read(text string, zone *time.Location) (Spec, error) {
	text = strings.TrimSpace(text)
	for _, layout := range instants {
		if at, err := time.ParseInLocation(layout, text, zone); err == nil {
			return Once(at), nil
		}
	}
	if isCron(text) {
		return Cron(strings.Join(strings.Fields(text), " "), zone)
	}
	w := words{left: tokens(text), text: text}
	if spec, ok := w.steps(zone); ok {
		return spec, nil
	}
	return Spec{}, fmt.Errorf("%q is neither an instant such as 2026-12-24T18:00:00 nor cron fields such as 0 9 * * 1-5", text)
}
