package monitor

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"gompi/internal/stats"
)

// A metric is one metric of jobs, or of running ranks.
type metric struct {
	name, kind, help string
	job              func(j *Job, write func(labels string, v float64))
	rank             func(r *Rank) (v float64, known bool)
}

var metrics = []metric{
	{"gompi_job_info", "gauge", "A job that runs.", func(j *Job, write func(string, float64)) {
		write(fmt.Sprintf(`,pid="%d",program="%s"`, j.PID, label(j.Program())), 1)
	}, nil},
	{"gompi_job_start_time_seconds", "gauge", "When it was started, in seconds since 1970.",
		ofJob(func(j *Job) float64 { return j.Begun }), nil},
	{"gompi_job_state", "gauge", "1 for the state that the job is in.", func(j *Job, write func(string, float64)) {
		for _, s := range States {
			write(fmt.Sprintf(`,state="%s"`, s), map[bool]float64{true: 1}[s == j.State])
		}
	}, nil},
	{"gompi_job_ranks", "gauge", "Ranks of the job.", ofJob(func(j *Job) float64 { return float64(j.Size) }), nil},
	{"gompi_job_hosts", "gauge", "Hosts that have ranks.",
		ofJob(func(j *Job) float64 { return float64(len(j.Hosts)) }), nil},
	{"gompi_job_restarts_total", "counter", "How often all ranks were started again.",
		ofJob(func(j *Job) float64 { return float64(j.Restarts) }), nil},
	{"gompi_rank_call_seconds", "gauge",
		"For how long the rank has been in its call, 0 if it is in none or that is not known.", nil,
		func(r *Rank) (float64, bool) { return r.Since, true }},
	{"gompi_rank_cpu_seconds_total", "counter", "Processor time of the rank's process.", nil,
		func(r *Rank) (float64, bool) { return r.CPU, true }},
	{"gompi_rank_resident_bytes", "gauge", "Resident memory of the rank's process.", nil,
		func(r *Rank) (float64, bool) { return float64(r.Resident), true }},
	{"gompi_rank_recorded_calls_total", "counter", "Collectives, and messages that the rank waited for long.", nil,
		func(r *Rank) (float64, bool) { return float64(r.Recorded), true }},
	{"gompi_rank_calls_total", "counter", "All calls, with -stats.", nil,
		counted(func(c *Counts) float64 { return float64(c.Calls) })},
	{"gompi_rank_bytes_total", "counter", "Bytes of those calls.", nil,
		counted(func(c *Counts) float64 { return float64(c.Bytes) })},
	{"gompi_rank_calls_seconds_total", "counter", "Time in those calls.", nil,
		counted(func(c *Counts) float64 { return c.InCalls })},
}

// Counts are a rank's counters with -stats.
type Counts struct {
	Calls   int64   `json:"calls"`
	Bytes   int64   `json:"bytes"`
	InCalls float64 `json:"in_calls"`
}

// CountsOf returns the counters of a rank whose calls have this total.
func CountsOf(total *stats.Counts) *Counts {
	return &Counts{Calls: total.Calls, Bytes: total.Bytes, InCalls: float64(total.Time) / 1e9}
}

func ofJob(value func(*Job) float64) func(*Job, func(string, float64)) {
	return func(j *Job, write func(string, float64)) { write("", value(j)) }
}

func counted(value func(*Counts) float64) func(*Rank) (float64, bool) {
	return func(r *Rank) (float64, bool) {
		if r.Counts == nil {
			return 0, false
		}
		return value(r.Counts), true
	}
}

// Metrics returns jobs in Prometheus' text format, version 0.0.4, without metrics that have no
// values.
func Metrics(jobs []Job) []byte {
	var b bytes.Buffer
	for _, m := range metrics {
		head := fmt.Sprintf("# HELP %s %s\n# TYPE %s %s\n", m.name, m.help, m.name, m.kind)
		write := func(labels string, v float64) {
			fmt.Fprintf(&b, "%s%s{%s} %s\n", head, m.name, labels, strconv.FormatFloat(v, 'g', -1, 64))
			head = ""
		}
		for i := range jobs {
			j := &jobs[i]
			of := fmt.Sprintf(`job="%s"`, label(j.ID))
			if m.job != nil {
				m.job(j, func(labels string, v float64) { write(of+labels, v) })
				continue
			}
			for k := range j.Ranks {
				r := &j.Ranks[k]
				if v, known := m.rank(r); known {
					write(fmt.Sprintf(`%s,rank="%d",host="%s"`, of, r.Rank, label(r.Host)), v)
				}
			}
		}
	}
	return b.Bytes()
}

// label returns text as the value of a label. Line breaks are kept.
func label(text string) string {
	lines := strings.Split(strings.ToValidUTF8(text, "?"), "\n")
	for i, line := range lines {
		lines[i] = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(Plain(line))
	}
	return strings.Join(lines, `\n`)
}
