package cmdline

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"gompi/internal/cli"
)

// An optionRow is a line of docs/options.md: options, their outcome, and the reason, the
// translation, or the replacement to type.
type optionRow struct {
	options []string
	outcome string
	text    string
}

// optionRows returns the page's lines by the launcher whose options they have.
func optionRows(t *testing.T) map[string][]optionRow {
	t.Helper()
	page, err := os.ReadFile("../../../docs/options.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]optionRow{}
	section := ""
	span := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		if title, found := strings.CutPrefix(line, "## "); found {
			section = strings.Fields(title)[0]
		}
		cells := strings.Split(line, " | ")
		if section == "" || len(cells) != 3 || !strings.HasPrefix(line, "| `") {
			continue
		}
		row := optionRow{outcome: cells[1], text: strings.TrimSpace(strings.TrimSuffix(cells[2], "|"))}
		for _, m := range span.FindAllStringSubmatch(cells[0], -1) {
			row.options = append(row.options, m[1])
		}
		rows[section] = append(rows[section], row)
	}
	return rows
}

func TestEveryOptionOfOtherLaunchers(t *testing.T) {
	all := optionRows(t)
	dir := t.TempDir()
	for name, text := range map[string]string{"ranks": "rank 0=localhost\n", "app": "-np 1 p\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for section, least := range map[string]int{"Open": 110, "hydra": 50, "torchrun": 25, "srun": 140, "gompirun": 10} {
		n := 0
		for _, row := range all[section] {
			for _, option := range row.options {
				n++
				if wrong := row.check(option); wrong != "" {
					t.Errorf("%s: %s is %s (%s): %s", section, option, row.outcome, row.text, wrong)
				}
			}
		}
		if n < least {
			t.Errorf("%s: %d options on the page, want its tables", section, n)
		}
	}
}

// check returns the error of an option that the page has in r, "" if there is none.
func (r *optionRow) check(option string) string {
	read := func(flags string) (*Spec, string, error) {
		if !strings.HasSuffix(flags, " app") { // which has the program
			flags += " p"
		}
		return parse(flags, testGetenv)
	}
	got, notes, err := read(option)
	quiet := err == nil && !strings.Contains(notes, "is ignored")
	ok := false
	switch r.outcome {
	case "works":
		var help *cli.HelpError
		ok = quiet || errors.As(err, &help)
	case "translated":
		to, _, errTo := read(strings.Trim(r.text, "`"))
		if strings.HasPrefix(r.text, "nothing:") {
			to, _, errTo = read("")
		}
		ok = quiet && errTo == nil && reflect.DeepEqual(got, to)
	case "ignored":
		ok = err == nil && strings.Contains(notes, "is ignored: "+r.text)
	case "refused":
		ok = err != nil && strings.Contains(err.Error(), ": "+r.text)
	case "otherwise":
		ok = (err == nil || !strings.Contains(err.Error(), "unknown flag")) && strings.Contains(r.text, "type ")
	}
	if ok {
		return ""
	}
	return strings.TrimSpace("gompirun: " + notes + strings.Join(strings.Fields(errorText(err)), " "))
}

func errorText(err error) string {
	if err == nil {
		return "takes it"
	}
	return err.Error()
}

// plainName is the name of an option without dashes in front and without value.
func plainName(option string) string {
	name, _, _ := strings.Cut(strings.TrimLeft(option, "-"), " ")
	name, _, _ = strings.Cut(name, "=")
	return strings.ReplaceAll(name, "_", "-")
}
