package monitor

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"gompi/mpirun/internal/report"
	"gompi/mpirun/internal/table"
)

// Bounds of the text about one job.
const (
	mostLines   = 8
	mostHosts   = 4
	mostProgram = 80
)

// Table lists jobs, each with its ranks' calls, in a width. users adds a column with their users.
func Table(jobs []Job, users bool, width int) string {
	heads := []string{"JOB", "PROCESS", "AGE", "RANKS", "HOSTS", "STATE", "PROGRAM"}
	if users {
		heads = slices.Insert(heads, 2, "USER")
	}
	lines := [][]string{heads}
	for i := range jobs {
		j := &jobs[i]
		cells := []string{j.Short(), fmt.Sprint(j.PID), age(j.Age), fmt.Sprint(j.Size), hosts(j.Hosts), state(j),
			shorten(j.Program(), mostProgram)}
		if users {
			cells = slices.Insert(cells, 2, fmt.Sprint(j.User))
		}
		lines = append(lines, cells)
	}
	rows := table.Lay(lines, width)
	var b strings.Builder
	b.WriteString(rows[0])
	for i := range jobs {
		b.WriteString(rows[i+1])
		lines := jobs[i].Lines
		if why := cmp.Or(jobs[i].Err, jobs[i].Why); why != "" {
			lines = append([]string{why}, lines...)
		}
		for k, line := range lines {
			if k == mostLines && len(lines) > mostLines+1 {
				fmt.Fprintf(&b, "    and %d more\n", len(lines)-mostLines)
				break
			}
			b.WriteString(table.Lay([][]string{{"  ", Plain(line)}}, width)[0])
		}
	}
	return b.String()
}

// state returns the state of a job, with its duration.
func state(j *Job) string {
	text := string(j.State)
	if j.State == Stalled {
		text += " for " + age(j.Since)
	}
	if j.Log != "" {
		text += " " + age(float64(time.Now().UnixNano())/1e9-j.Begun-j.Age) + " ago"
	}
	if j.Restarts > 0 {
		text += fmt.Sprintf(", restart %d", j.Restarts)
	}
	return shorten(text, mostProgram)
}

func hosts(names []string) string {
	switch {
	case len(names) == 0:
		return "-"
	case len(names) > mostHosts:
		return fmt.Sprintf("%d hosts", len(names))
	}
	return Plain(strings.Join(names, ","))
}

// Top shows the ranks of a job, and their rates since an earlier look, in a width.
func Top(j, before *Job, width int) string {
	text := table.Lay([][]string{{j.Short(), fmt.Sprint("process ", j.PID), age(j.Age),
		fmt.Sprintf("%d ranks on %s", j.Size, hosts(j.Hosts)), state(j), shorten(j.Program(), mostProgram)}}, width)
	if why := cmp.Or(j.Err, j.Why); why != "" {
		text = append(text, table.Lay([][]string{{Plain(why)}}, width)...)
	}
	if len(j.Ranks) == 0 {
		return strings.Join(text, "")
	}
	heads := []string{"RANK", "HOST", "PROCESS", "CPU", "MEMORY", "CALLS/S"}
	if j.Counts {
		heads = append(heads, "BYTES/S", "IN CALLS")
	}
	lines := [][]string{append(heads, "FOR", "DOING")}
	ranks := slices.SortedFunc(slices.Values(j.Ranks), func(a, b Rank) int { return cmp.Compare(a.Rank, b.Rank) })
	for i := range ranks {
		lines = append(lines, row(j, before, &ranks[i]))
	}
	text = append(text, table.Lay(lines, width)...)
	if !j.Counts {
		text = append(text, table.Lay([][]string{{
			"(calls are collectives; gompirun -stats counts all calls, their bytes and the time in them)"}}, width)...)
	}
	if gpus := gpuRows(j); len(gpus) > 1 {
		text = append(text, table.Lay(gpus, width)...)
	}
	return strings.Join(text, "")
}

// gpuRows shows the GPUs of the job's hosts.
func gpuRows(j *Job) [][]string {
	rows := [][]string{{"HOST", "GPU", "NAME", "BUSY", "MEMORY", "OF"}}
	for _, host := range slices.Sorted(maps.Keys(j.GPUs)) {
		for _, d := range j.GPUs[host] {
			busy := "-"
			if d.Busy != nil {
				busy = fmt.Sprintf("%d %%", *d.Busy)
			}
			rows = append(rows, []string{Plain(host), fmt.Sprint(d.Index), Plain(d.Name), busy,
				report.Amount(float64(d.Used)), report.Amount(float64(d.Memory))})
		}
	}
	return rows
}

// row shows a rank.
func row(j, before *Job, r *Rank) []string {
	old, elapsed := previous(j, before, r)
	rate := func(now, then float64) float64 { return max(0, now-then) / elapsed }
	cells := []string{fmt.Sprint(r.Rank), Plain(r.Host), fmt.Sprint(r.PID), "-",
		report.Amount(float64(r.Resident)), "-"}
	calls, counted := []string{"-", "-"}, r.Counts != nil && old != nil && old.Counts != nil
	if old != nil {
		cells[3] = percent(rate(r.CPU, old.CPU))
		cells[5] = number(rate(float64(r.Recorded), float64(old.Recorded)))
	}
	if counted {
		cells[5] = number(rate(float64(r.Calls), float64(old.Calls)))
		moved := report.Amount(rate(float64(r.Bytes), float64(old.Bytes)))
		calls = []string{moved, percent(min(1, rate(r.InCalls, old.InCalls)))}
	}
	if j.Counts {
		cells = append(cells, calls...)
	}
	since := "-"
	if r.Since > 0 {
		since = age(r.Since)
	}
	doing := strings.TrimPrefix(r.Doing, "is in ")
	if r.Said != "" {
		doing = fmt.Sprintf("said %.60q and %s", r.Said, doing)
	}
	if r.Site != "" {
		doing += " at " + r.Site
	}
	if r.Kept != "" {
		doing += "; it " + r.Kept
	}
	return append(cells, since, Plain(doing))
}

// previous returns the rank's process at the earlier look, nil if there was none, and the seconds
// since.
func previous(j, before *Job, r *Rank) (*Rank, float64) {
	if before == nil || before.ID != j.ID || j.Age <= before.Age {
		return nil, 1
	}
	for i := range before.Ranks {
		if o := &before.Ranks[i]; o.Rank == r.Rank && o.PID == r.PID {
			return o, j.Age - before.Age
		}
	}
	return nil, 1
}

// age writes seconds for people.
func age(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

func percent(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

// number writes a rate.
func number(x float64) string {
	if x > 0 && x < 10 {
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

// shorten returns text without control characters, cut to a number of runes.
func shorten(text string, most int) string {
	if r := []rune(Plain(text)); len(r) > most {
		return string(r[:most-3]) + "..."
	}
	return Plain(text)
}

// JSON returns jobs as an array, with control characters of terminals escaped.
func JSON(jobs []Job) ([]byte, error) {
	if jobs == nil {
		jobs = []Job{}
	}
	text, err := json.MarshalIndent(jobs, "", "  ")
	var b bytes.Buffer
	for _, r := range string(text) {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			b.WriteRune(r)
		default: // in a string: JSON has such characters nowhere else
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, "\\u%04x", unit)
			}
		}
	}
	return append(b.Bytes(), '\n'), err
}

// Screen returns the text of a width for a terminal with a number of lines and columns, from the
// upper left corner on: it is cut to that size, and replaces the old text. Where lines do not fit,
// each rank has one, which is cut.
func Screen(text func(width int) string, height, width int) string {
	shown := text(width)
	if strings.Count(shown, "\n") >= height {
		shown = text(1 << 16)
	}
	var b strings.Builder
	b.WriteString("\x1b[H")
	n := 0
	for line := range strings.Lines(shown) {
		if n++; n == height {
			break
		}
		r := []rune(strings.TrimRight(line, "\n"))
		b.WriteString(string(r[:min(len(r), width)]) + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	return b.String()
}
